"""`weft doctor`: whether each part of the set-up works, and the fix for what does not."""
