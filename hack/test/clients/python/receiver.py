"""Receives the events of a webhook and verifies their signatures. WEBHOOK_SECRET is the webhook's
secret, PORT where to listen; TLS is for the proxy in front."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            # The signature is of the bytes as they came: verify returns what they hold.
            event = webhook.verify(body, {name.lower(): value for name, value in self.headers.items()})
        except WebhookVerificationError:
            self.send_response(401)
            self.end_headers()
            return
        # Store the event under its id first: the same id can come again. Work on it later.
        print(event["id"], event["type"], event.get("subject"), event["sequence"], json.dumps(event.get("data")), flush=True)
        self.send_response(204)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
