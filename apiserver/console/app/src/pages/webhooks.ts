// Webhooks of a site, and how they do.

import type { Client } from '../api/client';

export interface Webhook {
  webhookId: string;
  eventType: string;
  webhookUrl: string;
  isActive: boolean;
  description?: string;
  disabledAt?: string;
  disabledReason?: string;
}

export interface Attempt {
  at: string;
  reason: string;
  message: string;
  latencyMs: number;
  status?: number;
  response?: string;
}

export interface Delivery {
  deliveryId: string;
  webhookId: string;
  eventId: string;
  eventType: string;
  subject?: string;
  status: 'pending' | 'delivered' | 'failed' | 'undelivered';
  acceptedAt: string;
  nextAttemptAt?: string;
  finishedAt?: string;
  attempts: Attempt[];
}

export interface Health {
  hook: Webhook;
  pending: number;
  lastSuccess?: string | undefined;
  failingSince?: string | undefined;
}

/** maxWebhooks is how many webhooks are shown: each needs two requests for its deliveries. */
export const maxWebhooks = 25;

/** loadWebhooks returns the newest webhooks of a site. */
export async function loadWebhooks(client: Client): Promise<Webhook[]> {
  return (await client.ahds(`/webhook?pageSize=${maxWebhooks}&sortBy=createdAt&sortOrder=desc`)).json.data;
}

/** healthOf looks at the latest deliveries of a webhook. */
export async function healthOf(client: Client, hook: Webhook): Promise<Health> {
  const list = `/webhook/${hook.webhookId}/delivery`;
  const [latest, pending] = await Promise.all([
    client.ahds(`${list}?pageSize=50`),
    client.ahds(`${list}?status=pending&pageSize=1`),
  ]);
  return { hook, pending: pending.json.meta.total, ...summaryOf(latest.json.data) };
}

/** summaryOf returns when an attempt last succeeded, and since when all later attempts have failed. */
export function summaryOf(deliveries: Delivery[]): { lastSuccess?: string | undefined; failingSince?: string | undefined } {
  const attempts = deliveries.flatMap((d) => d.attempts).sort((a, b) => a.at.localeCompare(b.at));
  const succeeded = attempts.findLastIndex((a) => a.reason === 'delivered');
  return { lastSuccess: attempts[succeeded]?.at, failingSince: attempts[succeeded + 1]?.at };
}
