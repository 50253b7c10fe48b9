"""Parts of tools/device-check. Standard library only: its machine may have no package registry."""
