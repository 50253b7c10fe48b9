"""Weft's terminal output: the help of its commands, and its messages."""
