! Mistakes with operations in flight in Fortran; each line that is wrong names its rule. With an
! argument the program makes none of them.
program planted
  implicit none
  include 'mpif.h'
  integer, parameter :: count = 8192
  double precision, allocatable :: sent(:), received(:)
  integer :: rank, peer, error, both(2), root
  logical :: wrong
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  peer = 1 - rank
  wrong = command_argument_count() == 0
  allocate(sent(count), received(count))
  sent = 1
  received = 0
  call send_written
  call receive_read
  call collective_sent
  call other_root
  print *, sum(received) > -1
  call MPI_Finalize(error)
contains
  subroutine send_written
    call MPI_Irecv(received, count, MPI_DOUBLE_PRECISION, peer, 1, MPI_COMM_WORLD, both(1), error)
    call MPI_Isend(sent, count, MPI_DOUBLE_PRECISION, peer, 1, MPI_COMM_WORLD, both(2), error)
    if (wrong) sent(count / 2) = 2  ! send-written MPI_Isend
    call MPI_Waitall(2, both, MPI_STATUSES_IGNORE, error)
  end subroutine
  subroutine receive_read
    call MPI_Irecv(received, count, MPI_DOUBLE_PRECISION, peer, 2, MPI_COMM_WORLD, both(1), error)
    call MPI_Isend(sent, count, MPI_DOUBLE_PRECISION, peer, 2, MPI_COMM_WORLD, both(2), error)
    if (wrong) received(count / 2) = 3  ! receive-touched MPI_Irecv
    call MPI_Waitall(2, both, MPI_STATUSES_IGNORE, error)
  end subroutine
  subroutine collective_sent
    call MPI_Iallreduce(sent, received, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
                        both(1), error)
    if (wrong) sent(7) = 4  ! send-written MPI_Iallreduce
    call MPI_Wait(both(1), MPI_STATUS_IGNORE, error)
  end subroutine
  subroutine other_root
    root = 0
    if (wrong) root = peer
    call MPI_Gather(sent, 1, MPI_INTEGER, received, 1, MPI_INTEGER, root, MPI_COMM_WORLD, error)  ! order MPI_Gather
  end subroutine
end program
