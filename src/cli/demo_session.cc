#include "cli/demo_session.h"

namespace ebb {

const DemoTurns& demo_turns() {
  static constexpr DemoTurns kTurns = {
      .user =
          {
              "Please remember that the code of the north gate is 4711.",
              "Read this: The harbour lay still under the morning fog, and only the bell on the outer buoy told the "
              "fishermen where the channel began. They rowed out one after another, without lanterns, for they knew "
              "each rock by the sound that the water made against it, and the oldest of them hummed as he went.",
              "Tell me about the city of Lisbon.",
              "Read this: The general read the letter twice, folded it, and said nothing. His officers waited by the "
              "window and watched the snow fall on the square, where the horses of the guard stood with bowed heads. "
              "At "
              "last he rose, asked for his coat, and told them that the army would not march before the spring.",
              "The price of the green lamp is 38. How do I cook rice?",
              "Read this: In the garden behind the school stood a pear tree that had not borne fruit for nine years. "
              "The "
              "new teacher pruned it against everyone's advice, dug the earth loose about its roots, and read to it on "
              "warm evenings, which made the children laugh; but in the autumn they carried the pears home in baskets.",
              "What is a valve?",
              "Read this: The train stopped in the open country for no reason that anyone could see. After an hour the "
              "passengers began to talk to one another, after two they shared their bread, and when it went on in the "
              "dark a merchant and a student who had quarrelled over a seat were asleep on each other's shoulders.",
              "Note: Elena's favorite color is purple. Where does the raven live?",
              "Read this: Nobody had wound the clock in the tower since the keeper died, and yet it struck the hour on "
              "the night of the great storm. Some said it was the wind in the works, others that the keeper had come "
              "back to finish his day; the mayor said that it was five minutes slow, and sent for a ladder.",
              "Is the horse larger than the dog?",
              "Read this: They had agreed to divide the field by the old stone wall, but the wall had been moved so "
              "many "
              "times, always at night and always a little, that in the end the brothers could not say whose land it "
              "stood on. So they took it down, built a house with the stones, and let it to a stranger.",
              "Thank you. Give me a tip about bread and honey.",
              "What is the code of the north gate?",
          },
      .fact = "4711",
  };
  return kTurns;
}

}  // namespace ebb
