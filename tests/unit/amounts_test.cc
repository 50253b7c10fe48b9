#include "base/amounts.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Amounts, TimesHaveThreeDigitsAndTheUnitThatFits) {
  EXPECT_EQ(time_words(0), "0.00 µs");
  EXPECT_EQ(time_words(4.257e-6), "4.26 µs");
  EXPECT_EQ(time_words(999.6e-6), "1.00 ms");
  EXPECT_EQ(time_words(0.0057362), "5.74 ms");
  EXPECT_EQ(time_words(0.1230232), "123 ms");
  EXPECT_EQ(time_words(0.9999), "1.00 s");
  EXPECT_EQ(time_words(99.96), "100 s");
  EXPECT_EQ(time_words(12345), "12345 s");
}

TEST(Amounts, DataHaveBinaryUnits) {
  EXPECT_EQ(data_words(0), "0 B");
  EXPECT_EQ(data_words(1023), "1023 B");
  EXPECT_EQ(data_words(1024), "1.00 KiB");
  EXPECT_EQ(data_words(75497472), "72.0 MiB");
  EXPECT_EQ(data_words((std::int64_t{1} << 20) - 1), "1.00 MiB");
  EXPECT_EQ(data_words(std::int64_t{5} << 40), "5.00 TiB");
  EXPECT_EQ(data_words(std::int64_t{1} << 61), "2097152 TiB");
}

}  // namespace
}  // namespace weft
