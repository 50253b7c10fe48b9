"""What each paper states, one module for each."""
