# What an installation holds: cmake --install build --prefix P [--strip] [--component NAME].
# Every path in it is relative to P, so that P can be moved afterwards; nothing of the tests is in it.
#   native       the command, the preloaded libraries, the schedule printer, what decides about cores, the simulator
#   documentation  man pages, shell completion, modulefiles
#   development  the headers, for pkg-config and CMake
#   programs     the measuring programs, one set for each MPI family
#   python       the Python package, its dependencies, and the command that starts it
option(WEFT_PYTHON_DEPENDENCIES "put what the Python package needs beside it (needs the network)" ON)
# Without fft3d: FFTW is under another licence (GPL).
set(WEFT_PROGRAMS overlap nbceff latency pingpong plan replay idle weft-probe
    iallreduce_kernel gemv_alltoall gemm_allgather pipecg stencil cpals atmosphere)
# Those that are linked with the library for collectives in streams, which they find beside them.
set(WEFT_GPU_PROGRAMS gpu_stencil gpu_cg gpu_notify gpu_allreduce gpu_fft3d)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME native)
set(libraries "")
foreach(family ${WEFT_FAMILIES})
  list(APPEND libraries weft_interpose_${family} weft_advise_${family} weft_gpu_${family})
endforeach()
if(TARGET weft_heap)
  list(APPEND libraries weft_heap)
endif()
install(TARGETS weft RUNTIME DESTINATION bin)
install(TARGETS weft-schedule weft-cores weft-sim weft-switch RUNTIME DESTINATION libexec/weft)
install(TARGETS ${libraries} LIBRARY DESTINATION lib/weft)
# An hwloc of Weft's own (tools/make-hwloc), with its licence: only in a wheel.
set(WEFT_HWLOC "" CACHE PATH "where tools/make-hwloc has left it")
if(WEFT_HWLOC)
  install(PROGRAMS ${WEFT_HWLOC}/libweft-hwloc.so DESTINATION lib/weft)
  install(FILES ${WEFT_HWLOC}/COPYING DESTINATION share/doc/weft RENAME hwloc-licence)
endif()

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
include(CMakePackageConfigHelpers)
add_library(weft_header INTERFACE)
set_target_properties(weft_header PROPERTIES EXPORT_NAME weft)
target_include_directories(weft_header INTERFACE $<INSTALL_INTERFACE:include>)
install(FILES include/weft.h include/weft_compute.h include/weft_gpu.h include/weft_gpu_calls.h
  include/weft_gpu_device.h DESTINATION include)
install(TARGETS weft_header EXPORT weft)
install(EXPORT weft NAMESPACE weft:: FILE weft-config.cmake DESTINATION lib/cmake/weft)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/weft-config-version.cmake
                                 COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
configure_file(cmake/weft.pc.in ${CMAKE_BINARY_DIR}/weft.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/weft-config-version.cmake DESTINATION lib/cmake/weft)
install(FILES ${CMAKE_BINARY_DIR}/weft.pc DESTINATION lib/pkgconfig)

# Written by tools/generate_reference.py, and the modulefiles; none of them names P.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME documentation)
install(DIRECTORY packaging/man/ DESTINATION share/man/man1)
install(FILES packaging/completion/weft DESTINATION share/bash-completion/completions)
install(FILES packaging/completion/_weft DESTINATION share/zsh/site-functions)
install(FILES packaging/completion/weft.fish DESTINATION share/fish/vendor_completions.d)
set(modulefiles share/weft/modulefiles/weft)
install(FILES packaging/modulefiles/weft.lua DESTINATION ${modulefiles}
        RENAME ${PROJECT_VERSION}.lua)
install(FILES packaging/modulefiles/weft.tcl DESTINATION ${modulefiles} RENAME ${PROJECT_VERSION})

# A family's programs run on each MPI library of the family: its driver says where that one lies.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME programs)
set(family_of_intelmpi mpich)
set(families_done "")
foreach(mpi ${WEFT_IMPLEMENTATIONS})
  set(family ${mpi})
  if(DEFINED family_of_${mpi})
    set(family ${family_of_${mpi}})
  endif()
  if(family IN_LIST families_done)
    continue()
  endif()
  list(APPEND families_done ${family})
  set(programs ${WEFT_PROGRAMS} ${WEFT_GPU_PROGRAMS})
  list(TRANSFORM programs PREPEND ${CMAKE_BINARY_DIR}/bin/${mpi}/ OUTPUT_VARIABLE files)
  install(PROGRAMS ${files} DESTINATION libexec/weft/${family})
  foreach(program ${programs})
    set(rpath "RPATH_REMOVE")
    if(program IN_LIST WEFT_GPU_PROGRAMS)
      set(rpath "RPATH_SET NEW_RPATH \"\\\$ORIGIN/../../../lib/weft\"")
    endif()
    set(installed "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/libexec/weft/${family}/${program}")
    install(CODE "file(${rpath} FILE \"${installed}\")
      if(CMAKE_INSTALL_DO_STRIP)
        execute_process(COMMAND ${CMAKE_STRIP} \"${installed}\")
      endif()")
  endforeach()
endforeach()

include(cmake/install-python.cmake)
