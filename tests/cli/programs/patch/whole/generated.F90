! A file that another program wrote.
! EXPECT sum: left: is generated from another file
#line 1 "generated.template"
program generated
  use mpi
  implicit none
  integer, parameter :: n = 20000
  double precision :: part(n), total(n), answer
  integer :: rank, ierr, i
  call MPI_Init(ierr)
  part = 1
  call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr) ! CALL sum
  answer = 0
  do i = 1, n
    answer = 0.5d0*answer + i
  end do
  answer = answer + total(1) ! USE sum
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  if (rank == 0) print '(es20.12)', answer
  call MPI_Finalize(ierr)
end program generated
