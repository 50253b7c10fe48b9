"""Reports: results of measurements as pages that open offline, and their pictures."""
