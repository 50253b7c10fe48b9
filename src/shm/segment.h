// Segment: memory shared by processes of one node, under no name in any file system.
// Why: System V and POSIX segments outlive a killed job; this one ends with the last process that
// maps it. One process makes it (memfd_create), the others open its descriptor in /proc.
// Pages come into being when first touched, on the NUMA node of the thread that does so; never
// before, not even where the process locks its memory (mlockall), and none for a core dump. A
// forked child inherits the mapping; its exit disturbs nobody, but its pages live until then.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace weft {

// How the others find a segment, sent to them as plain bytes. The same path in /proc may be
// something else in another container, or later: device, inode and token tell.
struct SegmentName {
  std::int32_t process;
  std::int32_t descriptor;
  std::int64_t bytes;
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t token;
};

class Segment {
 public:
  // What data() has of it; the rest costs no addresses until it is mapped (map_part).
  enum class Mapped : std::uint8_t { all, first_page };

  // Zeroes; `bytes` > 0 is rounded up to whole pages.
  static Result<Segment> create(std::int64_t bytes, Mapped mapped = Mapped::all);
  // Of this node and user; refused where `name` does not lead to that very segment.
  static Result<Segment> attach(const SegmentName& name, Mapped mapped = Mapped::all);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment other) noexcept;
  ~Segment();

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return name_.bytes; }  // mapped or not
  // Some of its pages, mapped beside data(): for the life of the process, whatever becomes of this
  // object. nullptr: refused.
  std::byte* map_part(std::int64_t offset, std::int64_t bytes) const;
  // Where it was made; valid until its maker calls close_to_others() or ends.
  const SegmentName& name() const { return name_; }
  // Of its maker only; -1: closed.
  int descriptor() const { return owns_descriptor() ? descriptor_ : -1; }
  // From now on the name leads nowhere; those who are attached stay so.
  void close_to_others();
  // The MPI library never sees an address in it, and so need not know when they go. UCX would note
  // each such time, and keep the note until it registers memory next.
  void keep_from_library() { is_private_ = true; }
  // These pages become zero, on all who map it, and go back to the system until they are touched.
  // False: refused, as where the application has locked them.
  bool clear_pages(std::int64_t offset, std::int64_t bytes) const;
  // This process is about to see other pages in it: the library, if it has seen it, is told.
  void forget_pages() const;

 private:
  Segment(const SegmentName& name, std::int64_t mapped_bytes, std::byte* data)
      : name_(name), mapped_bytes_(mapped_bytes), data_(data) {}
  static Result<Segment> map(const SegmentName& name, int descriptor, Mapped mapped);
  bool owns_descriptor() const;

  SegmentName name_;
  std::int64_t mapped_bytes_;
  int descriptor_ = -1;      // its maker's; the application may have closed it behind our back
  bool is_private_ = false;  // kept from the library
  std::byte* data_;          // nullptr: moved from
};

// Addresses are what a limit on them (ulimit -v) counts, used or not.
bool addresses_are_limited();

}  // namespace weft
