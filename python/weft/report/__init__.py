"""Reports: what measurements mean, as rows for tables and as pages that open offline."""
