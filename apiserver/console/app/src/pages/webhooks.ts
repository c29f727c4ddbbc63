// Webhooks of a site, and the health of each.

import type { Client } from '../api/client';
import { ApiError } from '../api/errors';

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

/** webhooksPerPage is the number of webhooks on a page. Each needs two requests for its deliveries. */
const webhooksPerPage = 25;

export interface WebhookPage {
  /** list has the webhooks of the page, the newest first. */
  list: Health[];
  /** total is the number of all webhooks of the site. */
  total: number;
  pages: number;
}

/**
 * loadWebhooks returns one page of webhooks, with the health of each. page counts from 0. A webhook that is deleted
 * meanwhile is left out.
 */
export async function loadWebhooks(client: Client, page: number): Promise<WebhookPage> {
  const { data, meta } = (await client.ahds(`/webhook?pageSize=${webhooksPerPage}&page=${page}&sortBy=createdAt&sortOrder=desc`)).json;
  const list: (Health | undefined)[] = await Promise.all(data.map((hook: Webhook) => healthOf(client, hook)));
  return { list: list.filter((health) => health !== undefined), total: meta.total, pages: meta.totalPages };
}

/** healthOf returns the health of a webhook by its latest deliveries, or undefined if there is no such webhook. */
async function healthOf(client: Client, hook: Webhook): Promise<Health | undefined> {
  const list = `/webhook/${hook.webhookId}/delivery`;
  try {
    const [latest, pending] = await Promise.all([
      client.ahds(`${list}?pageSize=50`),
      client.ahds(`${list}?status=pending&pageSize=1`),
    ]);
    return { hook, pending: pending.json.meta.total, ...summaryOf(latest.json.data) };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** summaryOf returns when an attempt last succeeded, and since when all later attempts have failed. */
export function summaryOf(deliveries: Delivery[]): { lastSuccess?: string | undefined; failingSince?: string | undefined } {
  const attempts = deliveries.flatMap((d) => d.attempts).sort((a, b) => a.at.localeCompare(b.at));
  const succeeded = attempts.findLastIndex((a) => a.reason === 'delivered');
  return { lastSuccess: attempts[succeeded]?.at, failingSince: attempts[succeeded + 1]?.at };
}
