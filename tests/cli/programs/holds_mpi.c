/* Defines MPI functions itself, like a program that is linked to a static MPI library. */
int PMPI_Init(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  return 0;
}

int MPI_Init(int* argc, char*** argv) {
  return PMPI_Init(argc, argv);
}

int main(int argc, char** argv) {
  return MPI_Init(&argc, &argv);
}
