"""What Weft says at the terminal: the help of its commands, and the words of its messages."""
