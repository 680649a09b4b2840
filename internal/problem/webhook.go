package problem

import (
	"fmt"
	"time"
)

// webhookFailsFor is how long the attempts of a webhook must fail to be a problem, as for the alert
// WebhookDeliveriesFailing.
const webhookFailsFor = 10 * time.Minute

// webhookFindings returns the problems of a webhook: that it fails or was paused, and that it has given up deliveries.
func webhookFindings(w FailingWebhook) (list []Finding) {
	finding := func(code Code) Finding {
		return Finding{
			ID: idOf(Platform, w.Project, string(code), w.Name), Kind: Platform, Code: code, Project: w.Project, Cause: w.Name,
			Detail:  w.Error,
			Runbook: runbook("WebhookDeliveriesFailing"),
		}
	}
	switch {
	case !w.PausedAt.IsZero():
		f := finding(WebhookPaused)
		f.Title, f.First, f.Count = "Webhook "+w.Name+" was paused after failures", w.PausedAt, w.Pending
		if f.Detail == "" {
			f.Detail = w.PauseReason
		}
		f.Advice = fmt.Sprintf("correct its receiver or its address, then `signalbox webhook unpause %s --project %s`: its "+
			"unfinished deliveries are sent then", w.Name, w.Project)
		list = append(list, f)
	case !w.Since.IsZero():
		f := finding(WebhookFailing)
		f.Title, f.First, f.Count = "Webhook "+w.Name+" does not deliver", w.Since, w.Pending
		f.Advice = fmt.Sprintf("`signalbox webhook deliveries %s --project %s` shows the answers of its receiver; "+
			"`signalbox webhook test` attempts at once", w.Name, w.Project)
		list = append(list, f)
	}
	if w.Dead > 0 {
		f := finding(WebhookDeliveriesDead)
		f.Title, f.Count, f.First, f.Last = "Deliveries of webhook "+w.Name+" were given up", w.Dead, w.FirstDead, w.LastDead
		f.Detail = "each of their attempts failed; they are kept until webhooks.keep_deliveries"
		f.Advice = fmt.Sprintf("`signalbox webhook deliveries %s --project %s --status dead` lists them; correct the "+
			"cause, then `signalbox webhook redeliver ID`", w.Name, w.Project)
		list = append(list, f)
	}
	return list
}
