// The timeline: spans, changes, computation in the gaps, and the limit of the ring.
#include "trace/trace.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Trace, GapsBetweenCallsAreComputing) {
  Trace trace;
  auto* track = trace.add_track("application", true);
  track->span("MPI_Iallreduce", 1000, 2000);
  track->span("MPI_Wait", 5000, 6000);
  const std::string json = trace.events_json(3, "node", 0, 6000);
  EXPECT_EQ(count(json, "\"computing\""), 1);
  EXPECT_NE(json.find("\"name\":\"computing\",\"pid\":3,\"tid\":0,\"ts\":2.000,\"dur\":3.000"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("rank 3 (node)"), std::string::npos);
}

TEST(Trace, EqualNeighboursAreOneSpan) {
  Trace trace;
  auto* track = trace.add_track("weft-progress", false);
  static const char* const polling = "polling";
  static const char* const asleep = "asleep";
  track->change(polling, 0);
  track->change(polling, 10);
  track->change(polling, 20);
  track->change(asleep, 30000);
  const std::string json = trace.events_json(0, "node", 0, 50000);
  EXPECT_EQ(count(json, "\"polling\""), 1);
  EXPECT_NE(json.find("\"asleep\",\"pid\":0,\"tid\":0,\"ts\":30.000,\"dur\":20.000"),
            std::string::npos)
      << json;
}

TEST(Trace, TimesAreShiftedByTheOffset) {
  Trace trace;
  trace.add_track("application", true)->span("MPI_Wait", 1000, 2000);
  EXPECT_NE(trace.events_json(0, "node", 5000, 2000).find("\"ts\":6.000"), std::string::npos);
}

TEST(Trace, AFullRingKeepsTheNewestAndSaysSo) {
  Trace trace;
  auto* track = trace.add_track("application", false);
  constexpr int kEvents = (1 << 16) + 5;
  for (int i = 0; i < kEvents; ++i) track->span("MPI_Test", i * 10, i * 10 + 5);
  const std::string json = trace.events_json(0, "node", 0, kEvents * 10);
  EXPECT_NE(json.find("first 5 events dropped"), std::string::npos);
  EXPECT_EQ(count(json, "\"MPI_Test\""), 1 << 16);
}

}  // namespace
}  // namespace weft
