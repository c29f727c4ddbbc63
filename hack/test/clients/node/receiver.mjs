// Receives the events of a webhook and verifies their signatures. WEBHOOK_SECRET is the webhook's
// secret, PORT where to listen; TLS is for the proxy in front.
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.WEBHOOK_SECRET);

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  let event;
  try {
    // The signature is of the bytes as they came: verify returns what they hold.
    event = webhook.verify(Buffer.concat(chunks).toString('utf8'), request.headers);
  } catch {
    response.writeHead(401).end();
    return;
  }
  // Store the event under its id first: the same id can come again. Work on it later.
  console.log(event.id, event.type, event.subject, event.sequence, JSON.stringify(event.data));
  response.writeHead(204).end();
}).listen(Number(process.env.PORT), '127.0.0.1');
