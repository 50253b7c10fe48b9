"""Predicts the calls of a recorded run on another machine by simulation (`weft advise
--predict`)."""
