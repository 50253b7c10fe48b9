/* An empty library: stands in for an MPI library, or for another preloaded one. */
int weft_test_empty;
