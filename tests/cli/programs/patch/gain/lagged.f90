! A sum over a communicator that was split off, whose result is used in the next round.
program lagged
  use work
  implicit none
  include 'mpif.h'
  double precision :: part(count), total(count), answer
  integer :: step, group, ierr
  call MPI_Init(ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, 0, group, ierr)
  answer = 0
  total = 0
  do step = 1, rounds
    answer = answer + busy(step)
    answer = answer + sum(total)
    call fill(part, step)
    call MPI_Allreduce(part, total, count, MPI_DOUBLE_PRECISION, MPI_SUM, group, ierr)
  end do
  answer = answer + sum(total)
  call ended(answer)
end program lagged
