C     A subroutine of an old program that is handed its arrays, and one
C     that has them. Names are typed by their first letters.
C     EXPECT given: left: cannot be asynchronous
C     EXPECT own: changed
C     EXPECT stopped: left: uses its error code
      subroutine given(part, total, n, answer)
      include 'mpif.h'
      double precision part(n), total(n), answer
      call MPI_Allreduce(part, total, n, MPI_DOUBLE_PRECISION, MPI_SUM, ! CALL given
     1  MPI_COMM_WORLD, ierr)
      answer = 0
      do i = 1, n
        answer = 0.5d0*answer + i
      end do
      answer = answer + total(2)                                        ! USE given
      end

      subroutine own(answer)
      include 'mpif.h'
      parameter (n = 20000)
      double precision part(n), total(n), answer
*     A column of the first array, and all of the second.
      do i = 1, n
        part(i) = mod(i, 5)
      end do
      call MPI_Allreduce(part(1), total(1), n, MPI_DOUBLE_PRECISION,    ! CALL own
     1  MPI_SUM, MPI_COMM_WORLD, ierr)
      answer = 0
      do i = 1, n
        answer = 0.5d0*answer + part(i)
      end do
      answer = answer + total(3)                                        ! USE own
      end

      subroutine stopped(answer)
      include 'mpif.h'
      parameter (n = 20000)
      double precision total(n), answer
      do i = 1, n
        total(i) = i
      end do
      call MPI_Bcast(total, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ! CALL stopped
     1  ierr)
      if (ierr .ne. MPI_SUCCESS) stop
      answer = total(4)                                                 ! USE stopped
      end

      program main
      include 'mpif.h'
      parameter (n = 20000)
      double precision answers(3), part(n), total(n)
      call MPI_Init(ierr)
      do i = 1, n
        part(i) = i
      end do
      do k = 1, 15
        call given(part, total, n, answers(1))
        call own(answers(2))
        call stopped(answers(3))
      end do
      call MPI_Comm_rank(MPI_COMM_WORLD, irank, ierr)
      if (irank .eq. 0) print '(es20.12)', answers
      call MPI_Finalize(ierr)
      end
