"""What generated conversations are about. Nothing here is likelier than its neighbours.

Each pool is drawn from evenly and no value goes better with one thing than with another, so that
common sense does not answer a question in the place of memory.
"""

from __future__ import annotations

__all__ = [
    "ATTRIBUTES", "COLOURS", "EVENTS", "NAMES", "OBJECTS", "PERSONS", "PLACES", "REASONS",
    "SMALL_TALK", "THINGS", "WORDS",
]  # fmt: skip

PERSONS = (
    "Ana", "Ben", "Carla", "David", "Elif", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Kira",
    "Luca", "Mona", "Nils", "Olga", "Pavel",
)  # fmt: skip

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "favourite drink": ("tea", "coffee", "milk", "cocoa", "cider", "lemonade", "tonic", "water"),
    "favourite dish": ("soup", "pizza", "risotto", "curry", "dumplings", "pancakes", "stew",
                       "salad"),
    "hobby": ("chess", "sailing", "pottery", "fencing", "baking", "climbing", "singing",
              "photography"),
    "home town": ("Bergen", "Porto", "Ghent", "Turin", "Lyon", "Krakow", "Graz", "Cork"),
    "instrument": ("the cello", "the flute", "the drums", "the harp", "the piano", "the trumpet",
                   "the guitar", "the accordion"),
    "pet": ("a parrot", "a cat", "a turtle", "a dog", "a rabbit", "a hamster", "a goldfish",
            "a pony"),
    "favourite flower": ("the rose", "the tulip", "the lily", "the daisy", "the iris", "the poppy",
                         "the orchid", "the lilac"),
    "job": ("baker", "pilot", "nurse", "carpenter", "teacher", "gardener", "lawyer", "plumber"),
    "day off": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
                "every second Friday"),
    "way to work": ("the bus", "the tram", "a bicycle", "a scooter", "the ferry", "a car",
                    "the train", "a walk"),
}  # fmt: skip
"""What a person has, and eight values of it."""

OBJECTS = tuple(
    f"{what} {thing}"
    for what in ("small", "large", "old", "new", "wooden", "spare")
    for thing in ("hammer", "ladder", "lamp", "bucket", "brush", "rope", "torch", "jar")
)
PLACES = (
    "on the left shelf", "on the right shelf", "in the top drawer", "in the bottom drawer",
    "under the table", "beside the door", "behind the curtain", "on the window sill",
)  # fmt: skip
EVENTS = tuple(
    f"{did} the {thing}"
    for did in ("cleaned", "painted", "repaired", "measured", "moved", "photographed", "weighed",
                "wrapped up", "drew", "sold", "lent out", "searched for")
    for thing in ("clock", "fence", "bicycle", "kettle", "mirror", "sofa", "boat", "radio", "tent",
                  "piano stool", "wheelbarrow", "umbrella", "suitcase", "telescope", "cupboard",
                  "sledge")
)  # fmt: skip
REASONS = (
    "a neighbour had asked for it", "it had been promised for weeks", "there was time left",
    "the landlord insisted on it", "it was raining outside", "a visitor was expected",
    "nobody else wanted to", "a letter had said so",
)  # fmt: skip
WORDS = (
    "blip", "zonk", "tavi", "mellum", "korrel", "frup", "quint", "dorval", "spink", "yabber",
    "lumo", "wexel", "griff", "noodri", "pashu", "ostel", "hibble", "rondo", "trilk", "vennit",
    "skabo", "umpel", "fennock", "jorry", "zapple", "moxie", "brindo", "calpo", "drissel", "eppin",
)  # fmt: skip
"""Words that mean nothing until somebody says what."""
NAMES = (
    "Pip", "Momo", "Zuzu", "Bobbin", "Tiko", "Fidget", "Nugget", "Waffle", "Pogo", "Biscuit",
    "Dodo", "Kiwi", "Mango", "Tofu", "Pepper", "Button", "Domino", "Rolo", "Sprocket", "Thimble",
    "Pickle", "Yoyo", "Gizmo", "Hopper", "Lolly", "Muffin", "Noodle", "Peanut", "Rascal", "Widget",
    "Ziggy", "Acorn", "Bongo", "Crumb", "Dash", "Echo", "Fizz", "Goblin", "Hazel", "Jumbo",
    "Koala", "Lemon", "Magnet", "Nimbus", "Otter", "Plum", "Quill", "Raisin", "Scout", "Tango",
)  # fmt: skip
"""What people call things that they show."""

COLOURS = ("red", "green", "blue", "yellow", "orange", "purple", "cyan", "pink")
THINGS = ("block", "can", "mug", "bowl", "pot")
"""Colours, and kinds of things of one colour, that pictures show."""

SMALL_TALK = (
    "Lovely weather today.", "Did anybody see the match yesterday?", "I slept badly.",
    "Mind the step.", "That is funny.", "Shall we go on?", "One moment, please.",
    "My phone has been ringing all morning.", "I could do with a break.",
    "Has the post come already?", "It is getting late.", "You always say that.",
    "Where were we?", "Sorry, I was not listening.", "Good to see you again.",
    "The bus was full again.", "I would never buy a parrot.", "Tea or coffee, anybody?",
    "Somebody ought to clean the windows.", "A walk would do us good.",
    "My cousin has moved to Lyon.", "There is nothing on the left shelf, is there?",
    "The lamp flickers a little.", "Who wants pizza?", "Red suits you well.",
    "I do not like green walls.", "Is it Friday already?", "The train was late.",
    "Let us talk about it tomorrow.", "What a noise out there!", "I have to go in ten minutes.",
    "Could you pass me the jar?", "We should paint the fence one day.", "Chess is too slow for me.",
    "Wait, let me think.", "No, go on, I am listening.", "Hm.", "Exactly.", "I am not so sure.",
    "You are joking.",
)  # fmt: skip
"""Sentences that say nothing to remember; some have words of those that do."""
