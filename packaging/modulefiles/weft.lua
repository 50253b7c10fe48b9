-- Weft, for Lmod. Use it where it lies: module use P/share/weft/modulefiles
-- It finds P by its own place, so that P can be moved.
help([[
Weft runs the collectives of unmodified MPI programs behind their computation.
    mpiexec -n 4 weft run -- ./app
]])
whatis("Name: Weft")
whatis("Version: " .. myModuleVersion())
whatis("Description: MPI collectives behind computation, without recompiling")

conflict("weft")

local prefix = myFileName():gsub("/share/weft/modulefiles/weft/[^/]*$", "")
local share = pathJoin(prefix, "share")

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("CPATH", pathJoin(prefix, "include"))
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib", "pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", prefix)
-- Without MANPATH, man finds the pages by PATH.
if os.getenv("MANPATH") then
   prepend_path("MANPATH", pathJoin(share, "man"))
end
-- bash and fish find completion here. Unset, it stands for the two folders of the system.
if not os.getenv("XDG_DATA_DIRS") then
   append_path("XDG_DATA_DIRS", "/usr/local/share")
   append_path("XDG_DATA_DIRS", "/usr/share")
end
prepend_path("XDG_DATA_DIRS", share)
