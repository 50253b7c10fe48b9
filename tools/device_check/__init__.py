"""Parts of tools/device-check. They need only Python's standard library, since the machine that
runs them may have no package registry."""
