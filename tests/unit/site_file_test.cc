// Where the site file of an installation lies. tests/cli/test_site_file.py tests its content.
#include "base/site_file.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(SiteFile, LiesInTheFolderEtcOfTheInstallation) {
  EXPECT_EQ(site_file_of("/opt/weft/bin/weft"), "/opt/weft/etc/weft.conf");
  EXPECT_EQ(site_file_of("/opt/weft/lib/weft/libweft-mpich.so"), "/opt/weft/etc/weft.conf");
  EXPECT_EQ(site_file_of("/tree/build/lib/libweft-mpich.so"), "/tree/build/etc/weft.conf");
}

TEST(SiteFile, LiesInEtcForThePrefixUsr) {
  EXPECT_EQ(site_file_of("/usr/bin/weft"), "/etc/weft.conf");
  EXPECT_EQ(site_file_of("/usr/lib/weft/libweft-mpich.so"), "/etc/weft.conf");
  EXPECT_EQ(site_file_of("/bin/weft"), "/etc/weft.conf");
  EXPECT_EQ(site_file_of("/usr/local/bin/weft"), "/usr/local/etc/weft.conf");
}

TEST(SiteFile, IsUnknownForAPathThatIsNotAbsolute) {
  EXPECT_EQ(site_file_of("bin/weft"), "");
  EXPECT_EQ(site_file_of("../lib/weft/libweft-mpich.so"), "");
  EXPECT_EQ(site_file_of(""), "");
}

}  // namespace
}  // namespace weft
