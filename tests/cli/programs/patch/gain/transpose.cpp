// An exchange of blocks between all ranks, of two, in a method.
#include "work.h"

class Field {
 public:
  double step(int number) {
    double* const mine = mine_;
    double* const theirs = theirs_;
    fill(mine, number);
    MPI_Alltoall(mine, N / 2, MPI_DOUBLE, theirs, N / 2, MPI_DOUBLE, MPI_COMM_WORLD);
    double answer = busy(number);
    answer += used(theirs);
    return answer;
  }

 private:
  double* mine_ = new double[N];
  double* theirs_ = new double[N];
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Field field;
  double answer = 0;
  for (int step = 0; step < STEPS; ++step) answer += field.step(step);
  return ended(answer);
}
