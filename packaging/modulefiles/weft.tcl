#%Module1.0
# Weft, for Environment Modules 4 or later. Use it where it lies: module use P/share/weft/modulefiles
# It finds P by its own place, so that P can be moved.
proc ModulesHelp { } {
    puts stderr "Weft runs the collectives of unmodified MPI programs behind their computation."
    puts stderr "    mpiexec -n 4 weft run -- ./app"
}
module-whatis "Weft: MPI collectives behind computation, without recompiling"

conflict weft

# P/share/weft/modulefiles/weft/VERSION
set share [file dirname [file dirname [file dirname [file dirname $ModulesCurrentModulefile]]]]
set prefix [file dirname $share]

prepend-path PATH $prefix/bin
prepend-path CPATH $prefix/include
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
prepend-path CMAKE_PREFIX_PATH $prefix
# Without MANPATH, man finds the pages by PATH.
if {[info exists env(MANPATH)]} {
    prepend-path MANPATH $share/man
}
# bash and fish find completion here. Unset, it stands for the two folders of the system.
if {![info exists env(XDG_DATA_DIRS)]} {
    append-path XDG_DATA_DIRS /usr/local/share
    append-path XDG_DATA_DIRS /usr/share
}
prepend-path XDG_DATA_DIRS $share
