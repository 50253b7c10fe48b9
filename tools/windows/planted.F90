! As planted.c, in Fortran: planted MILLISECONDS CALLS FILE.
program planted
  implicit none
  include 'mpif.h'
  integer, parameter :: count = 8192
  double precision, allocatable :: field(:), total(:)
  double precision, save :: in_static(count + 1024)  ! with pages that nothing uses on either side
  double precision :: ms, seen
  integer :: error, i, calls, rank
  character(len=4000) :: words(3)
  character(len=8) :: suffix
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  do i = 1, 3
    call get_command_argument(i, words(i))
  end do
  read (words(1), *) ms
  read (words(2), *) calls
  write (suffix, '(".",i0)') rank
  open (unit=7, file=trim(words(3))//trim(suffix))
  allocate (field(count), total(count))
  field = 1
  seen = 0
  do i = 1, calls
    call heap
    call fixed
  end do
  if (seen < 0) print *, seen
  close (7)
  call MPI_Finalize(error)
contains
  subroutine heap
    double precision :: us
    call MPI_Allreduce(field, total, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    us = left_alone()
    seen = seen + total(count / 2)
    write (7, '("heap ",f0.3)') us
  end subroutine
  subroutine fixed
    double precision :: us
    call MPI_Allreduce(field, in_static(513), count, MPI_DOUBLE_PRECISION, MPI_SUM, &
                       MPI_COMM_WORLD, error)
    us = left_alone()
    seen = seen + in_static(512 + count / 2)
    write (7, '("fixed ",f0.3)') us
  end subroutine
  double precision function left_alone()
    double precision :: returned
    returned = MPI_Wtime()
    do while (MPI_Wtime() < returned + ms * 1d-3)
    end do
    left_alone = (MPI_Wtime() - returned) * 1d6
  end function
end program
