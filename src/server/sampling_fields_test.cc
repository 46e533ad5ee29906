#include "server/sampling_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/toy_vocabulary.h"

namespace ebb {
namespace {

using enum SamplingStep;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SamplingFields : public testing::Test {
 protected:
  Result<SamplingOptions> read(const Json& body) {
    JsonFields fields(body);
    warnings_.clear();
    SamplingOptions options = read_sampling_fields(fields, *vocabulary_, warnings_);
    EBB_RETURN_IF_ERROR(fields.status());
    EBB_RETURN_IF_ERROR(options.validate());
    return options;
  }

  ToyFile file_{toy_bpe({}).bytes()};
  std::unique_ptr<Vocabulary> vocabulary_ = Vocabulary::load(file_.path()).value();
  std::vector<std::string> warnings_;
};

TEST_F(SamplingFields, what_is_read_is_told_again_in_the_same_words) {
  const Json told = sampling_json(SamplingOptions{});
  for (const char* name : kSamplingFields) EXPECT_TRUE(told.contains(name)) << name;
  Json given = told;
  int n = 0;
  for (auto& [name, value] : given.items()) {
    if (value.is_boolean()) value = true;
    // Halves and quarters are floats exactly.
    if (value.is_number_float()) value = name == "dry_base" ? 2.5 : 0.25 * (1 + n++ % 3);
    if (value.is_number_integer()) value = name == "mirostat" ? 2 : 7;
  }
  given["samplers"] = {"temperature", "xtc", "top_k", "penalties"};
  given["dry_sequence_breakers"] = {"stop", "\n"};
  given["logit_bias"] = {{"5", 1.5}};
  given["repeat_penalty"] = 1.25;
  Json again = sampling_json(read(given).value());
  EXPECT_EQ(again["logit_bias"], Json::parse(R"([{"token":5,"bias":1.5}])"));
  again["logit_bias"] = given["logit_bias"];
  EXPECT_EQ(again, given);
}

TEST_F(SamplingFields, counts_out_of_range_are_refused_by_name_and_the_rest_is_clamped) {
  for (const char* name : {"min_keep", "repeat_last_n", "dry_penalty_last_n", "dry_allowed_length"}) {
    EXPECT_THAT(read({{name, -1}}).status().message(), HasSubstr(fmt::format("Field '{}'", name)));
  }
  EXPECT_FALSE(read({{"dry_penalty_last_n", 1 << 30}}).ok());
  EXPECT_FALSE(read({{"dry_sequence_breakers", Json::array()}}).ok());
  EXPECT_FALSE(read({{"dry_sequence_breakers", "x"}}).ok());
  const SamplingOptions clamped =
      read({{"temperature", -1}, {"xtc_probability", 7}, {"mirostat", 9}, {"top_n_sigma", -30}, {"dry_base", 0.5}})
          .value();
  EXPECT_EQ(clamped.temperature, 0.0F);
  EXPECT_EQ(clamped.xtc.probability, 1.0F);
  EXPECT_EQ(clamped.mirostat.version, 2);
  EXPECT_EQ(clamped.top_n_sigma, -1.0F);
  EXPECT_EQ(clamped.dry.base, DryOptions{}.base);
}

TEST_F(SamplingFields, samplers_are_names_or_letters_and_unknown_ones_are_told) {
  EXPECT_EQ(read(Json::object()).value().steps, default_sampling_steps());
  EXPECT_THAT(read({{"samplers", "kt"}}).value().steps, ElementsAre(kTopK, kTemperature));
  EXPECT_THAT(read({{"samplers", {"Top-P", "typ", "min_p", "temp", "topk"}}}).value().steps,
              ElementsAre(kTopP, kTypicalP, kMinP, kTemperature, kTopK));
  EXPECT_TRUE(warnings_.empty());
  EXPECT_THAT(read({{"samplers", {"infill", "xtc"}}}).value().steps, ElementsAre(kXtc));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("'infill'")));
  EXPECT_TRUE(read({{"samplers", Json::array()}}).value().steps.empty());
  EXPECT_FALSE(read({{"samplers", 5}}).ok());
  EXPECT_FALSE(read({{"samplers", std::string(1000, 'k')}}).ok());
  EXPECT_EQ(read({{"samplers", "edskypmxt"}}).value().steps, default_sampling_steps());
}

TEST_F(SamplingFields, seeds_have_64_bits_small_ones_stay_and_minus_one_is_none) {
  EXPECT_EQ(read({{"seed", 42}}).value().seed, 42U);
  EXPECT_EQ(read({{"seed", 4294967295}}).value().seed, 4294967295U);
  EXPECT_EQ(read({{"seed", -1}}).value().seed, std::nullopt);
  const auto large = read({{"seed", (std::int64_t{1} << 40) + 5}}).value().seed;
  EXPECT_NE(large, read({{"seed", (std::int64_t{1} << 41) + 5}}).value().seed);
  EXPECT_EQ(large, read({{"seed", (std::int64_t{1} << 40) + 5}}).value().seed);
  EXPECT_TRUE(read({{"seed", -2}}).value().seed.has_value());
  EXPECT_FALSE(read({{"seed", 9223372036854775808U}}).ok());
}

}  // namespace
}  // namespace ebb
