"""The statements of each paper, one module per paper."""
