// Files that are written whole, or not at all.
#include "base/whole_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/quoted.h"

namespace weft {
namespace {

class WholeFiles : public testing::Test {
 protected:
  WholeFiles() {
    char name[] = "/tmp/weft-whole-file-XXXXXX";
    directory_ = mkdtemp(name);
    file_ = directory_ / "file";
  }
  ~WholeFiles() override { std::filesystem::remove_all(directory_); }

  static std::string read(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  long entries() const {
    return std::distance(std::filesystem::directory_iterator(directory_), {});
  }

  std::filesystem::path directory_, file_;
};

TEST_F(WholeFiles, AreThereAtTheEndOnly) {
  {
    WholeFile file(file_);
    file.add("one ");
    EXPECT_FALSE(std::filesystem::exists(file_));
    file.add("two");
    EXPECT_EQ(file.finish(), 0);
  }
  EXPECT_EQ(read(file_), "one two");
  { WholeFile(file_).add("never finished"); }
  EXPECT_EQ(read(file_), "one two");
  EXPECT_EQ(entries(), 1);
}

TEST_F(WholeFiles, KeepLinksAndRights) {
  const auto link = directory_ / "link";
  ASSERT_EQ(write_whole(file_, "one"), 0);
  std::filesystem::create_symlink(file_, link);
  ASSERT_EQ(chmod(file_.c_str(), 0604), 0);
  EXPECT_EQ(write_whole(link, "two"), 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(read(file_), "two");
  struct stat status;
  ASSERT_EQ(stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0604u);
}

// A limit on the process's file sizes stands for a full disk.
TEST_F(WholeFiles, LeaveNothingWhereThereIsNoRoom) {
  ASSERT_EQ(write_whole(file_, "before"), 0);
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{4096, before.rlim_max};
  for (const auto& name : {file_, directory_ / "new"}) {
    setrlimit(RLIMIT_FSIZE, &little);
    const int error = write_whole(name, std::string(100'000, 'x'));
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(error, EFBIG);
  }
  EXPECT_EQ(read(file_), "before");
  EXPECT_EQ(entries(), 1);
}

TEST_F(WholeFiles, SayWhatIsWrong) {
  EXPECT_EQ(write_whole("/dev/full", "text"), ENOSPC);
  EXPECT_EQ(write_whole("/dev/null", "text"), 0);
  EXPECT_EQ(write_whole(directory_, "text"), EISDIR);
  EXPECT_EQ(write_whole(directory_ / "none" / "file", "text"), ENOENT);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "none"));
  EXPECT_EQ(not_written("the trace", "a\nb", ENOSPC),
            "cannot write the trace to a\\nb (No space left on device): name a file that can be "
            "written");
}

TEST(Quoted, ShowsWhatCannotBePrinted) {
  EXPECT_EQ(in_quotes("a\n\t\r\x1b[31m\x7f'é"), "'a\\n\\t\\r\\x1b[31m\\x7f'é'");
  const std::string many(1000, 'x');
  EXPECT_EQ(printable(many + many), many + "...");
}

}  // namespace
}  // namespace weft
