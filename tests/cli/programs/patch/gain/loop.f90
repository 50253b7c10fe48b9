! A sum in a loop, whose arguments stay the same.
program loop
  use work
  implicit none
  include 'mpif.h'
  double precision :: part(count), total(count), answer
  integer :: step, ierr
  call MPI_Init(ierr)
  answer = 0
  do step = 1, rounds
    call fill(part, step)
    call MPI_Allreduce(part, total, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    answer = answer + busy(step)
    answer = answer + sum(total)
  end do
  call ended(answer)
end program loop
