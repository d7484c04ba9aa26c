"""REDbot's notes on one URL, as JSON lines of level, subject and summary.

    redbot_notes.py URL

REDbot sends further requests of its own: conditional ones, a range, a content coding.
"""

import configparser
import json
import sys

import thor
from redbot.resource import HttpResource


def main():
    config = configparser.ConfigParser()
    config.read_dict({"redbot": {"enable_local_access": "True"}})
    resource = HttpResource(config["redbot"])
    resource.set_request(sys.argv[1])

    @thor.events.on(resource)
    def check_done():
        thor.stop()

    resource.check()
    thor.run()
    if not resource.response.complete:
        print(json.dumps(["BAD", "", "no whole response"]))
    for note in resource.response.notes:
        print(json.dumps([note.level.name, str(note.subject), str(note.summary)]))


if __name__ == "__main__":
    main()
