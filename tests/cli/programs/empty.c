/* An empty library that stands in for an MPI library, or for another preloaded library. */
int weft_test_empty;
