package queue

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

type jobRow = rivertype.JobRow

// attempt are the arguments of a River job. They identify the delivery that the job attempts.
type attempt struct {
	Site     int32  `json:"site"`
	Delivery string `json:"delivery"`
}

// Kind implements river.JobArgs.
func (attempt) Kind() string { return "delivery" }

// newJob is a job to be inserted for a delivery.
type newJob struct {
	site        int32
	id, webhook string
}

// insertTopic is the topic of Postgres notifications on which River's producers learn of new jobs.
const insertTopic = "river_insert"

// wake makes this process poll the queues of jobs, and notifies River's producers. It must be called after
// the jobs are committed. It is needed because River's own notifications are throttled. Without it, a job
// may wait for fetchPoll.
func (q *Queue) wake(ctx context.Context, jobs []newJob) {
	var payloads []string
	seen := map[string]bool{}
	for _, job := range jobs {
		queue := name(job.site, job.webhook)
		if !seen[queue] {
			seen[queue] = true
			q.queues.want(queue)
			payloads = append(payloads, `{"queue": "`+queue+`"}`)
		}
	}
	if len(payloads) > 0 {
		// If this fails, producers find the jobs when they poll.
		_ = q.client.Driver().GetExecutor().NotifyMany(ctx, &riverdriver.NotifyManyParams{Payload: payloads, Topic: insertTopic})
	}
}

// insert inserts jobs and returns their ids, in the same order.
func (q *Queue) insert(ctx context.Context, tx pgx.Tx, jobs []newJob) ([]int64, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	params := make([]river.InsertManyParams, len(jobs))
	for i, job := range jobs {
		params[i] = river.InsertManyParams{
			Args: attempt{Site: job.site, Delivery: job.id}, InsertOpts: &river.InsertOpts{Queue: name(job.site, job.webhook)},
		}
	}
	inserted, err := q.client.InsertManyTx(ctx, tx, params)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(inserted))
	for i, result := range inserted {
		ids[i] = result.Job.ID
	}
	return ids, nil
}

// start inserts jobs for deliveries that exist, and stores the ids of the jobs in the deliveries.
func (q *Queue) start(ctx context.Context, tx pgx.Tx, jobs []newJob) error {
	ids, err := q.insert(ctx, tx, jobs)
	if err != nil || len(ids) == 0 {
		return err
	}
	sites, deliveries := make([]int32, len(jobs)), make([]string, len(jobs))
	for i, job := range jobs {
		sites[i], deliveries[i] = job.site, job.id
	}
	const set = `UPDATE delivery d SET job = j.job, next = NULL FROM unnest($1::int4[], $2::text[], $3::int8[]) j(site, id, job)
		WHERE d.site = j.site AND d.id = j.id::uuid`
	_, err = tx.Exec(ctx, set, sites, deliveries, ids)
	return err
}
