// Which names of environment variables Weft reports as misspelt, and which it ignores.
#include "base/misspelt.h"

#include <gtest/gtest.h>

#include "base/options.h"

namespace weft {
namespace {

TEST(Misspelt, NamesTheVariableThatIsMeant) {
  for (const auto& [name, meant] : std::initializer_list<std::pair<const char*, const char*>>{
           {"WEFT_ENGIN", "WEFT_ENGINE"},
           {"WEFT_ENIGNE", "WEFT_ENGINE"},
           {"WEFT_Engine", "WEFT_ENGINE"},
           {"WEFT_LERN", "WEFT_LEARN"},
           {"WEFT_PLANCACHE", "WEFT_PLAN_CACHE"},
           {"WEFT_ALGORITHM_allreduce", "WEFT_ALGORITHM_ALLREDUCE"},
           {"WEFT_ALGORITHM_REDUCE_SCATER", "WEFT_ALGORITHM_REDUCE_SCATTER"},
           {"WEFT_GPU_NOTIFI", "WEFT_GPU_NOTIFY"}})
    EXPECT_EQ(sentence_on_variable(name),
              std::string(name) + " is not a variable of Weft: did you mean " + meant + "?");
}

TEST(Misspelt, SaysNothingOfWhatIsRightOrOfOthers) {
  for (const char* name : {"WEFT_ENGINE", "WEFT_ALGORITHM_BCAST", "WEFT_LAPS", "WEFT_STARTED",
                           "WEFT_ROOT", "WEFT_DIR", "WEFT_HOME", "WEFT_PATH", "WEFT_LIB", "WEFT_",
                           "WEFT_ADVISE_DIRECTORY", "WEFT_LAB_SHELL", "WEFTENGINE", "ENGIN"})
    EXPECT_EQ(sentence_on_variable(name), "") << name;
  for (const Option& option : option_table()) {
    if (std::string_view(option.variable) == "WEFT_ALGORITHM_KIND") continue;
    EXPECT_EQ(sentence_on_variable(option.variable), "") << option.variable;
  }
}

TEST(Misspelt, NamesTheNearestOfWhatNothingReads) {
  EXPECT_EQ(sentence_on_variable("WEFT_API"),
            "WEFT_API is not a variable of Weft and has no effect: the nearest that it has is "
            "WEFT_MPI");
  EXPECT_EQ(sentence_on_variable("WEFT_TR\n"),
            "WEFT_TR\\n is not a variable of Weft and has no effect: the nearest that it has is "
            "WEFT_MPI");
}

TEST(Misspelt, HasASentenceForEachOfTheEnvironment) {
  const char* const environment[] = {"PATH=/bin",   "WEFT_LERN=on",        "WEFT_ENGINE=tcc",
                                     "WEFT_SPLITT", "WEFT_ROOT=/opt/weft", nullptr};
  EXPECT_EQ(misspelt_variables(environment),
            (std::vector<std::string>{
                "WEFT_LERN is not a variable of Weft: did you mean WEFT_LEARN?",
                "WEFT_SPLITT is not a variable of Weft: did you mean WEFT_SPLIT?"}));
  EXPECT_TRUE(misspelt_variables(nullptr).empty());
}

}  // namespace
}  // namespace weft
