"""Families of tools: their many names, how users ask for them, what they return.

A family is: names | descriptions, parameters (names, type, values, description), optional parameters,
questions with {0}, {1} for the parameters, a function that draws the result fields and the answer,
and the question back when the first parameter is missing ("" if that cannot happen).
"""
import pools as P

SKY = "sunny cloudy rainy windy foggy clear snowy stormy".split()


def weather(r, v):
    t, s = r.randint(-15, 38), r.choice(SKY)
    return {"temperature": t, "condition": s}, f"It is {t} degrees and {s} in {v[0]}."


def one(key, draw, text):
    """A result with one field; text has {r} for it and {0}, {1} for the arguments."""
    def result(r, v):
        x = draw(r)
        return {key: x}, text.format(*v, r=x)
    return result


def done(text):
    return lambda r, v: ({"status": r.choice(["ok", "done", "success"])}, text.format(*v))


def total(r, v):
    a, b = r.randint(1, 99), r.randint(1, 99)
    return {"result": a + b}, f"The result is {a + b}."


CITY = lambda r: P.city(r)
WORD = lambda r: r.choice(P.THINGS + P.FOODS + P.HOBBIES)
NAME = lambda r: P.person(r)
MIN = lambda r: r.randint(1, 90)
ROOM = lambda r: r.choice(["kitchen", "bedroom", "bathroom", "living room", "garage", "hall", "office", "garden"])
TEXT = lambda r: r.choice(["buy milk", "call the doctor", "water the plants", "feed the cat", "pay the rent", "book a table", "send the report",
                           "clean the kitchen", "I will be late", "see you at noon", "happy birthday", "the meeting is over", "bring an umbrella",
                           "pick up the children", "buy " + r.choice(P.FOODS), "call " + r.choice(P.NAMES), "meet " + r.choice(P.NAMES), "fix the " + r.choice(P.THINGS)])
FILE = lambda r: r.choice(["", "", "src/", "docs/", "/tmp/", "/home/" + r.choice(P.NAMES).lower() + "/"]) + \
    r.choice(["notes", "main", "readme", "todo", "config", "data", "report", "index", "test", "list", P.invented(r)]) + r.choice([".txt", ".md", ".py", ".cpp", ".json", ".csv", ".html"])
FOLDER = lambda r: r.choice(["/tmp", "/home", "src", "docs", "/etc", "tests", "build", "/var/log", "/" + P.invented(r)])
EXPR = lambda r: f"{r.randint(2, 999)} {r.choice('+-*/')} {r.randint(2, 999)}"
SONG = lambda r: " ".join(w.capitalize() for w in [r.choice(P.COLOURS), r.choice(P.THINGS)])
STOCK = lambda r: r.choice(["Apple", "Tesla", "Nokia", "Siemens", "Sony", "Intel", "Volvo", "Shell", "Nestle", "Boeing", P.invented(r).capitalize()])
LANG = lambda r: r.choice(P.LANGUAGES)
CUR = lambda r: r.choice(["USD", "EUR", "GBP", "JPY", "SEK", "NOK", "CHF", "INR"])
MONEY = lambda r: r.randint(1, 900)
DAY = lambda r: r.choice(P.DAYS + ["tomorrow", "today"])
CMD = lambda r: r.choice(["ls -l", "pwd", "git status", "make", "cat notes.txt", "df -h", "uname -a", "date", "whoami", "python main.py", "ls " + FOLDER(r), "wc -l " + FILE(r)])

FAMILIES = [
    ("get_weather|weather|weather_lookup|get_current_weather|fetch_weather|current_weather|forecast|get_forecast|check_weather", "Get the current weather for a city.|Returns the weather at a place.|Look up the weather.",
     [("city|location|place|town", "string", CITY, "The name of the city")], [("unit|units", "string", "celsius or fahrenheit"), ("days", "integer", "Number of days")],
     "What is the weather in {0}?|What's the weather in {0}?|What is the weather like in {0}?|How is the weather in {0}?|weather in {0}|Tell me the weather in {0}.|Is it raining in {0}?|Is it cold in {0}?|What is the temperature in {0}?|Check the weather in {0}.|Can you look up the weather for {0}?|How warm is it in {0}?", weather, "Which city do you mean?|What is the weather?|How is the weather?|Tell me the weather.|Check the weather, please."),
    ("get_time|current_time|time_in|get_local_time|clock|world_clock|get_current_time", "Get the current time in a city.|Returns the local time.", [("city|location|timezone|place", "string", CITY, "City name")], [("format", "string", "12h or 24h")],
     "What time is it in {0}?|What is the time in {0}?|Tell me the time in {0}.|time in {0}?|How late is it in {0}?|Current time in {0}?", one("time", P.clock, "It is {r} in {0}."), "Which city do you mean?|What time is it?|Tell me the time."),
    ("calculator|calculate|compute|eval_math|calc|evaluate|do_math", "Calculate an arithmetic expression.|Evaluates a mathematical expression.", [("expression|expr|formula|input", "string", EXPR, "The expression to evaluate")], [],
     "What is {0}?|Calculate {0}.|{0}|How much is {0}?|Use the tool to calculate {0}.|Calculate {0} with the calculator.|Use the calculator: {0}|Compute {0} with the tool.|Please use the calculator for {0}.", total, ""),
    ("web_search|search|search_web|google|internet_search|find_online|search_engine", "Search the web.|Find pages on the internet.", [("query|q|search_term|text", "string", WORD, "The search query")], [("limit|max_results", "integer", "Number of results")],
     "Search the web for {0}.|Search for {0}.|Look up {0} online.|Find {0} on the internet.|Search the internet for {0}.|google {0}", one("result", lambda r: f"{r.choice(P.NAMES)} wrote about {r.choice(P.HOBBIES)}", "I found this: {r}."), "What should I search for?|Search the web.|Search something."),
    ("set_reminder|create_reminder|add_reminder|remind|new_reminder|add_todo|create_task|add_task", "Create a reminder.|Adds a task to the list.", [("text|message|task|title|content", "string", TEXT, "What to remember"), ("day|date|when", "string", DAY, "The day")], [("priority", "string", "low, normal or high")],
     "Remind me {1} to {0}.|Set a reminder for {1}: {0}|Create a reminder for {1}: {0}|Add a reminder to {0} on {1}.", done("The reminder is set for {1}: {0}."), ""),
    ("set_timer|start_timer|timer|create_timer|countdown", "Start a timer.|Starts a countdown.", [("minutes|duration|duration_minutes|time", "integer", MIN, "Length in minutes")], [("label", "string", "Name of the timer")],
     "Set a timer for {0} minutes.|Start a timer of {0} minutes.|Timer for {0} minutes, please.|Set a {0} minute timer.|Start a {0} minute countdown.", done("The timer is set for {0} minutes."), "For how many minutes?|Set a timer.|Start a timer."),
    ("set_alarm|create_alarm|add_alarm|alarm", "Set an alarm.|Wakes the user.", [("time|at|alarm_time", "string", P.clock, "Time of the alarm")], [], "Set an alarm for {0}.|Wake me at {0}.|Please wake me up at {0}.|Alarm at {0}.|I want an alarm at {0}.", done("The alarm is set for {0}."), "For what time?|Set an alarm.|Wake me up."),
    ("send_message|send_text|message|send_sms|text_message|send_email|write_message", "Send a message to a person.|Sends text to a contact.", [("recipient|to|contact|person|name", "string", NAME, "Who gets it"), ("message|text|body|content", "string", TEXT, "The text")], [("urgent", "boolean", "Send at once")],
     "Send a message to {0}: {1}|Tell {0}: {1}|Write to {0}: {1}|Text {0}: {1}|Message {0}: {1}|Send {0} the message \"{1}\".", done("I sent the message to {0}."), ""),
    ("call_contact|phone_call|call|make_call|dial", "Call a person.|Starts a phone call.", [("name|contact|person|who", "string", NAME, "The contact")], [], "Call {0}.|Please call {0}.|Phone {0}.|Ring {0}.|Can you call {0}?|I want to talk to {0}. Call them.", done("I am calling {0}."), "Whom should I call?|Make a call.|Call someone."),
    ("translate|translate_text|translator|translation", "Translate a text into another language.", [("text|phrase|input|source", "string", TEXT, "Text to translate"), ("language|target|target_language|to", "string", LANG, "Target language")], [],
     "Translate \"{0}\" into {1}.|How do you say \"{0}\" in {1}?|Translate into {1}: {0}|What is \"{0}\" in {1}?", one("translation", lambda r: P.invented(r) + " " + P.invented(r), "In {1} that is \"{r}\"."), ""),
    ("get_stock_price|stock_price|stock|quote|get_quote|share_price", "Get the price of a share.", [("company|symbol|ticker|name", "string", STOCK, "The company")], [("currency", "string", "Currency code")],
     "What is the stock price of {0}?|How much is a share of {0}?|Share price of {0}?|What is the price of {0} stock?|Get the stock price of {0}.", one("price", lambda r: r.randint(5, 900), "A share of {0} costs {r}."), "Which company do you mean?|What is the stock price?|Get the stock price."),
    ("turn_on_light|light_on|switch_on_light|lights_on|enable_light", "Turn on the light in a room.", [("room|location|area|where", "string", ROOM, "The room")], [("brightness", "integer", "0 to 100")],
     "Turn on the light in the {0}.|Switch on the light in the {0}.|Light on in the {0}, please.|Turn the {0} light on.|It is dark in the {0}.", done("The light in the {0} is on."), "In which room?|Turn on the light.|Light on, please."),
    ("turn_off_light|light_off|switch_off_light|lights_off|disable_light", "Turn off the light in a room.", [("room|location|area|where", "string", ROOM, "The room")], [],
     "Turn off the light in the {0}.|Switch off the light in the {0}.|Light off in the {0}, please.|Turn the {0} light off.", done("The light in the {0} is off."), "In which room?|Turn off the light.|Lights off."),
    ("set_temperature|set_thermostat|heating|thermostat|adjust_heating", "Set the heating of a room.", [("room|location|zone", "string", ROOM, "The room"), ("temperature|degrees|value|target", "integer", lambda r: r.randint(12, 28), "Degrees Celsius")], [],
     "Set the {0} to {1} degrees.|Heat the {0} to {1} degrees.|Set the temperature in the {0} to {1}.|Make it {1} degrees in the {0}.", done("The {0} is set to {1} degrees."), ""),
    ("play_music|play_song|play|music_player|start_music|play_track", "Play a song.|Plays music.", [("song|title|track|name|query", "string", SONG, "Title of the song")], [("artist", "string", "The artist"), ("volume", "integer", "0 to 100")], "Play {0}.|Play the song {0}.|I want to hear {0}.|Put on {0}.|Can you play {0}?|Please play \"{0}\".", done("Now playing {0}."), "Which song?|Play a song.|Play music."),
    ("create_event|add_event|calendar_add|schedule|schedule_meeting|new_event|book_meeting", "Add an event to the calendar.", [("title|name|event|summary|subject", "string", lambda r: r.choice("lunch|dentist|meeting|concert|exam|party|dinner|football|yoga|interview|lesson".split("|")), "Title"), ("date|day|on", "string", DAY, "Day"), ("time|start|at|start_time", "string", P.clock, "Start")], [("guests", "array", "Invited people")],
     "Add {0} to my calendar on {1} at {2}.|Schedule {0} for {1} at {2}.|Put {0} in the calendar: {1}, {2}.|I have {0} on {1} at {2}. Add it to the calendar.", done("I added {0} on {1} at {2}."), ""),
    ("convert_currency|exchange|currency_converter|exchange_rate|convert_money", "Convert money between currencies.", [("amount|value|sum", "number", MONEY, "Amount"), ("from|source|from_currency|base", "string", CUR, "From"), ("to|target|to_currency|quote", "string", CUR, "To")], [],
     "Convert {0} {1} to {2}.|How much is {0} {1} in {2}?|Exchange {0} {1} into {2}.|{0} {1} in {2}?", one("amount", lambda r: r.randint(2, 2000), "{0} {1} are {r} {2}."), ""),
    ("read_file|open_file|cat|get_file|file_read|load_file|view_file", "Read a file.|Returns the content of a file.", [("path|file|filename|file_path", "string", FILE, "Path of the file")], [("encoding", "string", "Text encoding"), ("limit", "integer", "Number of lines")],
     "Read the file {0}.|What is in {0}?|Show me {0}.|Open {0}.|What does the file {0} contain?|Read {0}, please.|Print the file {0}.", one("content", TEXT, "The file says: {r}."), "Which file?|Read the file.|Open the file."),
    ("list_files|list_directory|ls|list_dir|dir|get_files", "List the files in a folder.", [("path|directory|folder|dir", "string", FOLDER, "The folder")], [("recursive", "boolean", "Include subfolders")], "List the files in {0}.|What files are in {0}?|What is in the folder {0}?|Show the content of {0}.|ls {0}|Which files does {0} have?",
     one("files", lambda r: ", ".join(FILE(r).split("/")[-1] for _ in range(r.randint(1, 3))), "The folder {0} has: {r}."), "Which folder?|List the files.|List the directory."),
    ("write_file|save_file|create_file|file_write|save|put_file", "Write text to a file.", [("path|file|filename|file_path", "string", FILE, "Path"), ("content|text|data|body", "string", TEXT, "The text")], [("append", "boolean", "Append")], "Write \"{1}\" to {0}.|Save \"{1}\" in {0}.|Create the file {0} with the text \"{1}\".|Write {1} into the file {0}.", done("I wrote the file {0}."), ""),
    ("run_command|bash|shell|execute|run_shell|terminal|exec|run", "Run a shell command.|Executes a command in the terminal.", [("command|cmd|script", "string", CMD, "The command")], [("timeout", "integer", "Seconds")], "Run {0}.|Run the command {0}.|Execute {0}.|Please run `{0}`.|Run \"{0}\" in the shell.", one("output", lambda r: r.choice(["ok", "done", "no errors", str(r.randint(1, 99)), "up to date", "total " + str(r.randint(4, 80))]), "The output is: {r}."), "Which command?|Run a command."),
    ("get_population|population|city_population|count_people", "Number of inhabitants of a city.", [("city|place|location|name", "string", CITY, "City")], [("year", "integer", "Year")], "How many people live in {0}?|What is the population of {0}?|Population of {0}?|How big is {0}?", one("population", lambda r: r.randint(20, 9000) * 1000, "{r} people live in {0}."), ""),
    ("get_distance|distance|route|directions|travel_distance", "Distance between two places.", [("from|start|origin|a", "string", CITY, "Start"), ("to|end|destination|b", "string", CITY, "Goal")], [("mode", "string", "car, train or foot")], "How far is it from {0} to {1}?|What is the distance from {0} to {1}?|Distance between {0} and {1}?|How many kilometres are between {0} and {1}?", one("km", lambda r: r.randint(20, 9000), "It is {r} km from {0} to {1}."), ""),
    ("book_flight|find_flight|search_flights|flight_search|buy_ticket|find_train", "Find a connection between two cities.", [("from|origin|departure|source", "string", CITY, "From"), ("to|destination|arrival|target", "string", CITY, "To"), ("date|day|when", "string", DAY, "Day")], [("seats", "integer", "Seats")], "Find a flight from {0} to {1} on {2}.|I want to fly from {0} to {1} on {2}.|Book a flight from {0} to {1} for {2}.|Is there a flight from {0} to {1} on {2}?", one("departure", P.clock, "There is a connection from {0} to {1} on {2} at {r}."), ""),
    ("define_word|dictionary|lookup_word|get_definition", "Look up a word in the dictionary.", [("word|term|query", "string", WORD, "The word")], [], "Look up the word {0} in the dictionary tool.|Use the dictionary tool for {0}.|Use the tool to look up {0}.", one("definition", TEXT, "The dictionary says: {r}."), ""),
    ("get_user|find_user|lookup_user|get_contact|find_contact|get_phone_number|get_email", "Find the phone number of a person.", [("name|person|user|contact|query", "string", NAME, "Name")], [], "What is the phone number of {0}?|Find the number of {0}.|Look up {0} in the contacts.|What is {0}'s number?|Get the phone number of {0}.", one("phone", lambda r: P.digits(r, 6), "The number of {0} is {r}."), "Whose number do you need?|Find a phone number."),
    ("set_volume|volume|change_volume|audio_volume", "Set the volume.", [("level|volume|value|percent", "integer", lambda r: r.randint(0, 100), "0 to 100")], [], "Set the volume to {0}.|Volume {0}, please.|Change the volume to {0} percent.|Make the volume {0}.", done("The volume is {0}."), "To what level?|Set the volume.|Change the volume."),
    ("roll_dice|dice|random_number|throw_dice|random", "Throw dice.", [("sides|max|faces|limit", "integer", lambda r: r.choice([4, 6, 8, 10, 12, 20, 100]), "Number of sides")], [], "Roll a dice with {0} sides.|Throw a {0} sided dice.|Give me a random number up to {0}.|Roll a d{0}.", one("value", lambda r: r.randint(1, 4), "The result is {r}."), ""),
    ("lookup_stock|inventory|stock_level|count_items|check_stock|get_inventory|warehouse", "How many pieces of an article are in stock.|Checks the warehouse.|Number of items on the shelf.", [("article|item|product|name", "string", lambda r: r.choice(P.THINGS) + "s", "The article")], [("warehouse|store", "string", "Name of the warehouse")], "How many {0} are in stock?|Are there any {0} left?|How many {0} do we have?|Do we have {0}?|Check the stock of {0}.|How many {0} are left?|Stock of {0}?|Are {0} available?", one("count", lambda r: r.randint(0, 900), "There are {r} {0} in stock."), "Which article?|Check the stock.|How many are in stock?"),
    ("order_food|order|buy|purchase|place_order|add_to_cart|shop", "Order something.|Buys a product.", [("item|product|name|what", "string", lambda r: r.choice(P.FOODS + P.THINGS), "What to order"), ("quantity|count|amount|number", "integer", lambda r: r.randint(2, 60), "How many")], [("express", "boolean", "Fast delivery")], "Order {1} {0}.|Buy {1} {0}.|I want {1} {0}.|Please order {1} pieces of {0}.|Add {1} {0} to my cart.|Get me {1} {0}.", done("I ordered {1} {0}."), ""),
    ("get_news|news|latest_news|headlines|fetch_news", "Get the latest news about a topic.", [("topic|subject|category|query", "string", WORD, "The topic")], [("limit", "integer", "Number of items")], "What is the news about {0}?|Any news about {0}?|Latest news on {0}?|Tell me the news about {0}.|News about {0}, please.", one("headline", lambda r: r.choice(P.NAMES) + " wins the prize for " + r.choice(P.HOBBIES), "The news says: {r}."), "About which topic?|Get the news."),
    ("lock_door|unlock_door|open_door|close_window|open_blinds", "Operate a door or a window.", [("room|door|location|name", "string", ROOM, "Which one")], [], "", done("Done for the {0}."), ""),
]
