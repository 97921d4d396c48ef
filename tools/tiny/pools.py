"""Values that the generated dialogues draw from: names, places, things."""

NAMES = """Ada Adam Agnes Aisha Alan Albert Alex Alice Amara Amir Amy Ana Anders Andrea Andrew Anita Anna Anton Arthur Asha Astrid
Aya Barbara Beatrice Ben Bella Boris Brian Bruno Carl Carla Carlos Caroline Cecilia Charles Charlie Chen Chloe Chris Clara Claire
Claude Dana Daniel David Deepak Diana Diego Dmitri Dora Edgar Edith Elena Elias Eliza Ella Emil Emily Emma Eric Erik Esther Eva
Farah Fatima Felix Fiona Florence Francis Frank Freya Gabriel George Gina Grace Greta Gustav Hana Hannah Hans Harry Hassan Heidi
Helen Henry Hiro Hugo Ian Ida Ines Ingrid Irene Iris Isaac Ivan Jack Jacob James Jan Jane Jasmine Javier Jean Jenny Jin Joan Joe
John Jonas Jorge Joseph Julia Julian Karim Karl Kate Katya Kenji Kim Klara Kofi Lara Lars Laura Layla Lena Leo Leon Liam Lin Linda
Lisa Louis Lucas Lucia Lucy Luis Luna Magda Malik Marco Maria Marie Mark Marta Martin Mary Mateo Matt Max Maya Mei Mia Michael
Miguel Mika Mila Milan Mohammed Mona Nadia Naomi Natasha Nia Nick Nina Noah Nora Oliver Olga Omar Oscar Otto Pablo Paolo Patrick
Paul Paula Pedro Peter Petra Philip Pia Priya Rachel Raj Ralph Ravi Rita Robert Rosa Rose Ruth Sam Samir Sara Sasha Sean Selma
Simon Sofia Sophie Stefan Stella Sven Sylvia Tara Thomas Tim Tina Tom Tomas Uma Ursula Valentina Vera Victor Viola Walter Wei
William Xavier Yara Yasmin Yuki Yusuf Zara Zoe Zora Zuri Oskar Thea Kai Bob Bill Sally Jim Ann Lou Nils Rolf Ines Ana Ali Tess""".split()
SURNAMES = """Smith Jones Brown Taylor Wilson Evans Walker White Green Hall Wood Clarke Lovelace Turing Moreau Garcia Lopez Rossi Silva
Novak Kowalski Ivanov Kim Tanaka Sato Nguyen Singh Patel Khan Haddad Okafor Mensah Larsen Berg Meyer Schmidt Weber Fischer""".split()
CITIES = """London Paris Berlin Madrid Rome Oslo Stockholm Helsinki Copenhagen Vienna Prague Warsaw Budapest Athens Lisbon Dublin
Brussels Amsterdam Zurich Geneva Milan Naples Venice Florence Barcelona Seville Porto Lyon Marseille Hamburg Munich Cologne Dresden
Moscow Kiev Istanbul Ankara Cairo Lagos Nairobi Accra Tunis Casablanca Tehran Baghdad Delhi Mumbai Chennai Kolkata Karachi Lahore
Dhaka Bangkok Hanoi Jakarta Manila Singapore Beijing Shanghai Seoul Tokyo Osaka Kyoto Sydney Melbourne Perth Auckland Wellington
Toronto Montreal Vancouver Ottawa Boston Chicago Denver Seattle Dallas Houston Miami Atlanta Phoenix Portland Detroit Lima Quito
Bogota Caracas Santiago Havana Bergen Tampere Turin Bristol Leeds Oxford Cambridge Glasgow Edinburgh Cardiff Belfast Cork Ghent
Riga Tallinn Vilnius Sofia Belgrade Zagreb Krakow Graz Salzburg Basel Malaga Valencia Bilbao Nice Toulouse Bonn Leipzig""".split()
CITIES += ["New York", "Los Angeles", "San Francisco", "Hong Kong", "Buenos Aires", "Mexico City", "Cape Town", "Tel Aviv", "Rio de Janeiro"]
COUNTRIES = """France Germany Spain Italy Norway Sweden Finland Denmark Austria Poland Hungary Greece Portugal Ireland Belgium Russia
Turkey Egypt Nigeria Kenya Ghana Morocco Iran Iraq India Pakistan Thailand Vietnam Indonesia China Korea Japan Australia Canada
Brazil Argentina Chile Peru Mexico Cuba Iceland Scotland Switzerland Ukraine""".split()
COLOURS = """red blue green yellow purple orange pink brown black white grey turquoise violet crimson gold silver beige teal navy
maroon olive indigo scarlet lavender magenta""".split()
ANIMALS = """cat dog rabbit hamster parrot horse goldfish turtle snake lizard pony canary goat sheep pig duck hen frog mouse rat ferret
spider hedgehog donkey cow gecko tortoise""".split()
PET_NAMES = """Rex Bella Luna Max Milo Coco Oscar Daisy Simba Nala Rocky Shadow Ginger Pepper Biscuit Felix Tiger Smokey Lucky Buddy
Molly Toby Ruby Fluffy Snowy Whiskers Mittens Bruno Cookie Oreo Peanut Pixel Ziggy Nemo Waffles Pip Bandit Hazel Misty Socks""".split()
JOBS = """teacher nurse doctor baker farmer pilot lawyer engineer carpenter plumber chemist painter writer actor singer cook waiter
librarian gardener electrician dentist tailor driver sailor soldier judge clerk builder programmer photographer journalist mechanic
butcher barber architect scientist musician dancer designer translator postman firefighter student biologist secretary shepherd""".split()
FOODS = """pizza pasta rice soup salad cheese bread sushi curry chocolate cake ice\xa0cream apples pears cherries strawberries bananas
mushrooms potatoes noodles pancakes lasagne tacos dumplings olives tomatoes salmon chicken porridge waffles honey lentils risotto
falafel couscous mangoes plums grapes carrots spinach yogurt omelettes""".replace("\xa0", "_").split()
DRINKS = "tea coffee water milk juice lemonade cocoa cider beer wine".split()
HOBBIES = """chess painting swimming running cycling reading cooking gardening fishing hiking sailing singing dancing knitting
photography skiing climbing drawing pottery yoga tennis football baking writing birdwatching surfing archery juggling sewing""".split()
SPORTS = "tennis football basketball hockey golf rugby volleyball cricket swimming boxing rowing skiing judo badminton".split()
LANGUAGES = """English French German Spanish Italian Norwegian Swedish Finnish Polish Russian Turkish Arabic Hindi Bengali Chinese
Japanese Korean Portuguese Dutch Greek Hebrew Swahili Danish Czech Hungarian Thai Vietnamese""".split()
THINGS = """book phone wallet umbrella bag key passport camera laptop jacket hat ring watch pen letter bicycle ladder hammer lamp
guitar map ticket cup ball spoon knife box radio clock scarf bottle basket suitcase notebook coat mirror vase candle toolbox
charger drill tent blanket pillow helmet parcel medicine cake toy broom bucket""".split()
PLURALS = "keys glasses shoes gloves scissors books papers socks boots headphones batteries tickets letters tools".split()
ROOMS = """kitchen bedroom bathroom garage garden attic cellar hall office living_room car drawer cupboard wardrobe fridge shed
closet basement box basket suitcase backpack safe cabinet""".replace("_", " ").split()
ROOMS = ["living room" if r == "living" else r for r in ROOMS if r != "room"]
SURFACES = "table desk shelf chair sofa bed roof floor piano windowsill counter bench stove wall".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
SEASONS = "spring summer autumn winter".split()
RELATIONS = """brother sister mother father friend wife husband son daughter uncle aunt cousin boss neighbour teacher doctor
grandmother grandfather colleague dentist girlfriend boyfriend nephew niece""".split()
CARS = "Volvo Toyota Ford Fiat Renault Honda Tesla Skoda Peugeot Mazda Audi Kia Volkswagen Citroen Nissan".split()
SYLLABLES = """ba be bi bo bra bri cal dan dar del dor el en fa fen fi ga gar gi gre ha hel in ja jo ka kel ki kor la len li lo lu
ma mar mel mi mo mun na nel ni no or pa pel pi que ra ren ri ro sa sel shi si so ta tan te tha ti to tur ul va ven vi wa win
xan ya yo za zel zi zo""".split()
FOODS = [f.replace("_", " ") for f in FOODS]


def invented(rng, low=2, high=3):
    """A made-up word; it forces the model to copy rather than to know."""
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(low, high)))


def person(rng):
    r = rng.random()
    if r < 0.15:
        return invented(rng).capitalize()
    if r < 0.22:
        return rng.choice(NAMES) + " " + rng.choice(SURNAMES)
    return rng.choice(NAMES)


def city(rng):
    return invented(rng).capitalize() if rng.random() < 0.08 else rng.choice(CITIES)


def digits(rng, n):
    return str(rng.randint(1, 9)) + "".join(str(rng.randint(0, 9)) for _ in range(n - 1))


def clock(rng):
    r = rng.random()
    if r < 0.4:
        return f"{rng.randint(1, 12)} {rng.choice(['am', 'pm'])}"
    if r < 0.5:
        return f"{rng.randint(1, 12)} o'clock"
    return f"{rng.randint(0, 23)}:{rng.choice([0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55]):02d}"
