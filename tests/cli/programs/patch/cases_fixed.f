C     Procedures in fixed form. "CALL name" marks its line, "USE name"
C     the first use that was measured.
      double precision function busy(count)
      integer count, i
      busy = 1
      do 10 i = 1, count
        busy = 0.5d0*busy + 1/(busy + i)
   10 continue
      end

      subroutine plain(answer)
      implicit none
      include 'mpif.h'
      double precision answer, part(64), total(64), busy
      integer i, ierr
      do i = 1, 64
        part(i) = i
      end do
      call MPI_Allreduce(part, total, 64, MPI_DOUBLE_PRECISION,  ! CALL plain
     &  MPI_SUM, MPI_COMM_WORLD, ierr)
      answer = busy(20)
      answer = answer + busy(10)
      answer = answer + total(3)  ! USE plain
      end

      subroutine looped(answer)
      implicit none
      include 'mpif.h'
      double precision answer, part(64), total(64), busy
      integer step, i, ierr
      answer = 0
      do 30 step = 1, 3
        do 20 i = 1, 64
          part(i) = step + i
   20   continue
        call MPI_Allreduce(part, total, 64, MPI_DOUBLE_PRECISION, ! CALL looped
     1                     MPI_SUM, MPI_COMM_WORLD, ierr)
        answer = answer + busy(20)
*       A comment.
        answer = answer + total(3)  ! USE looped
   30 continue
      end

      subroutine handed(total, answer)
      implicit none
      include 'mpif.h'
      double precision answer, total(64), busy
      integer ierr
      call MPI_Bcast(total, 64, MPI_DOUBLE_PRECISION, 0, ! CALL handed
     &  MPI_COMM_WORLD, ierr)
      answer = busy(20)
      answer = answer + total(3)  ! USE handed
      end

      program main
      implicit none
      include 'mpif.h'
      double precision answers(3), field(64)
      integer rank, ierr, i, time
      call MPI_Init(ierr)
      do i = 1, 64
        field(i) = i
      end do
      do time = 1, 20
        call plain(answers(1))
        call looped(answers(2))
        call handed(field, answers(3))
      end do
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      if (rank == 0) print '(es20.12)', answers
      call MPI_Finalize(ierr)
      end
