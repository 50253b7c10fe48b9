// Reads the ELF program headers and the dynamic section of a file, and nothing else of it.
#include "launch/program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace weft::launch {
namespace {

// The file's bytes, mapped; unmapped at the end. Every access is checked against the length.
class MappedFile {
 public:
  MappedFile(int fd, std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* at = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at != MAP_FAILED) base_ = static_cast<const char*>(at);
  }
  ~MappedFile() {
    if (base_) munmap(const_cast<char*>(base_), bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  template <class T>
  bool read(std::uint64_t offset, T& value) const {
    if (!base_ || offset > bytes_ || bytes_ - offset < sizeof(T)) return false;
    std::memcpy(&value, base_ + offset, sizeof(T));
    return true;
  }
  std::string_view text(std::uint64_t offset) const {
    if (!base_ || offset >= bytes_) return {};
    return {base_ + offset, strnlen(base_ + offset, bytes_ - offset)};
  }

 private:
  const char* base_ = nullptr;
  std::size_t bytes_;
};

struct DynamicPart {
  bool interpreter = false;
  bool soname = false;
  std::vector<std::string_view> needed;
};

bool file_offset(const std::vector<Elf64_Phdr>& headers, std::uint64_t address,
                 std::uint64_t& offset) {
  for (const auto& header : headers) {
    if (header.p_type != PT_LOAD || address < header.p_vaddr) continue;
    if (address - header.p_vaddr >= header.p_filesz) continue;
    offset = address - header.p_vaddr + header.p_offset;
    return true;
  }
  return false;
}

void read_dynamic(const MappedFile& file, const std::vector<Elf64_Phdr>& headers,
                  const Elf64_Phdr& dynamic, DynamicPart& part) {
  std::uint64_t strings = 0;
  std::vector<std::uint64_t> names;
  Elf64_Dyn entry;
  for (std::uint64_t at = 0; at + sizeof entry <= dynamic.p_filesz; at += sizeof entry) {
    if (!file.read(dynamic.p_offset + at, entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_SONAME) part.soname = true;
    if (entry.d_tag == DT_STRTAB) file_offset(headers, entry.d_un.d_ptr, strings);
  }
  for (const auto name : names) part.needed.push_back(file.text(strings + name));
}

DynamicPart read_parts(const MappedFile& file, const Elf64_Ehdr& elf) {
  std::vector<Elf64_Phdr> headers(elf.e_phnum);
  DynamicPart part;
  for (std::size_t i = 0; i < headers.size(); ++i)
    if (!file.read(elf.e_phoff + i * elf.e_phentsize, headers[i])) return part;
  for (const auto& header : headers) {
    if (header.p_type == PT_INTERP) part.interpreter = true;
    if (header.p_type == PT_DYNAMIC) read_dynamic(file, headers, header, part);
  }
  return part;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// libmpi.so.12, and its C++ and Fortran companions, share the family's number.
Family family_of(std::string_view library) {
  if (library.substr(0, 6) != "libmpi") return Family::unknown;
  if (library.find("_abi.so") != std::string_view::npos) return Family::abi;
  if (ends_with(library, ".so.12")) return Family::mpich;
  if (ends_with(library, ".so.40")) return Family::openmpi;
  return Family::unknown;
}

Program judge(const DynamicPart& part, const struct stat& status) {
  Program program;
  // The dynamic loader itself has no interpreter either, but a name as a library.
  if (!part.interpreter && !part.soname)
    return {false, "is a static program: Weft cannot be loaded into it; link it dynamically",
            Family::unknown, ""};
  if (status.st_mode & (S_ISUID | S_ISGID))
    return {false, "is a set-user-ID program: the system refuses to load Weft into it",
            Family::unknown, ""};
  for (const auto library : part.needed) {
    const Family family = family_of(library);
    if (family == Family::unknown) continue;
    program.family = family;
    program.mpi_library = library;
    break;
  }
  return program;
}

bool is_program(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_in_path(const std::string& name) {
  struct stat status;
  if (name.find('/') != std::string::npos) return stat(name.c_str(), &status) ? "" : name;
  const char* variable = std::getenv("PATH");
  std::string_view path = variable ? variable : "/bin:/usr/bin";
  while (true) {
    const auto colon = path.find(':');
    const std::string directory(path.substr(0, colon));
    const std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    if (is_program(candidate)) return candidate;
    if (colon == std::string_view::npos) return "";
    path.remove_prefix(colon + 1);
  }
}

Result<Program> look_at_program(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  // A program may be executable and not readable; then the loader decides.
  if (fd < 0)
    return errno == EACCES ? Result<Program>(Program{})
                           : Result<Program>(Error{path + ": " + std::strerror(errno)});
  struct stat status = {};
  fstat(fd, &status);
  const MappedFile file(fd, static_cast<std::size_t>(status.st_size));
  close(fd);
  Elf64_Ehdr elf;
  if (!file.read(0, elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) return Program{};
  if (elf.e_ident[EI_CLASS] != ELFCLASS64)
    return Program{false, "is not a 64-bit program: Weft cannot be loaded into it", Family::unknown,
                   ""};
  return judge(read_parts(file, elf), status);
}

}  // namespace weft::launch
