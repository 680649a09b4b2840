package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/event/cloudevents"
	"github.com/signalbox-dev/signalbox/internal/project"
)

// PagerDutyURL is the address of PagerDuty's Events API v2.
const PagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

// check returns why a webhook cannot be stored, and sets the fields that follow from others.
func (s *Service) check(w *Webhook, t Target) error {
	if project.CheckName(w.Name) != nil {
		return invalid("name", "does not match [a-z0-9]([a-z0-9-]*[a-z0-9])?",
			"webhook name %q: use 1 to %d of a-z, 0-9 and \"-\", with a letter or digit at both ends", w.Name,
			project.MaxNameLength)
	}
	if !slices.Contains(Formats(), w.Format) {
		return invalid("format", "unknown format", "format %q is not one of cloudevents, alertmanager, pagerduty, slack",
			w.Format)
	}
	switch {
	case w.Format == PagerDuty && t.RoutingKey == "":
		return invalid("routing_key", "is required",
			"the format pagerduty needs the integration key of the service, as routing_key")
	case w.Format != PagerDuty && t.RoutingKey != "":
		return invalid("routing_key", "is for pagerduty only", "routing_key is for the format pagerduty only, not for %s",
			w.Format)
	}
	if err := s.checkURL(w, t.URL); err != nil {
		return err
	}
	return checkFilter(&w.Filter)
}

func (s *Service) checkURL(w *Webhook, text string) error {
	u, err := url.Parse(text)
	if text == "" || err != nil || len(text) > MaxURL || strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r)
	}) {
		// The text may contain a credential, so that it is not repeated.
		return invalid("url", "is not a URL", "the address of the webhook is not a URL of at most %d bytes", MaxURL)
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return invalid("url", "must begin with https:// or http://",
			"the address of the webhook has the scheme %.20q: use https or http", u.Scheme)
	case u.Hostname() == "" || u.Opaque != "":
		return invalid("url", "has no host", "the address of the webhook has no host")
	case u.Fragment != "":
		return invalid("url", "has a fragment",
			"the address of the webhook has a fragment (#…), which no request contains: remove it")
	case !s.o.Permits(u.Hostname()):
		return invalid("url", "is not a public address",
			"the address %s is not public; an operator can allow its network in calls.allow_private", u.Hostname())
	}
	w.URL = shown(*u, w.Format)
	return nil
}

// shown returns an address without its secret parts: credentials, values of the query and, for Slack, whose paths are
// secret, the path.
func shown(u url.URL, format Format) string {
	u.User = nil
	if format == Slack && len(u.Path) > 1 {
		u.Path, u.RawPath, u.RawQuery = "/…", "", ""
		return u.Scheme + "://" + u.Host + u.Path
	}
	if u.RawQuery == "" {
		return u.String()
	}
	var names []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name+"=…")
	}
	u.RawQuery = ""
	return u.String() + "?" + strings.Join(names, "&")
}

func checkFilter(f *Filter) error {
	if len(f.Types) == 0 || len(f.Types) > MaxTypes {
		return invalid("filter.types", fmt.Sprintf("must have 1 to %d types", MaxTypes),
			"the filter has %d types: give 1 to %d; \"*\" matches all, \"io.signalbox.*\" those of the platform", len(f.Types),
			MaxTypes)
	}
	for i, typ := range f.Types {
		if typ == "" || len(typ) > event.MaxAttribute || strings.Contains(strings.TrimSuffix(typ, "*"), "*") {
			return invalid(fmt.Sprintf("filter.types[%d]", i), "is not a type or a beginning of types",
				"%.80q is not an event type: a type has 1 to %d bytes, and \"*\" only at its end", typ, event.MaxAttribute)
		}
	}
	f.Conditions = nil
	if text := bytes.TrimSpace(f.With); len(text) == 0 || string(text) == "null" {
		f.With = nil
		return nil
	}
	if len(f.With) > MaxFilter {
		return invalid("filter.with", "is too large", "the conditions of the filter have %d bytes: %d are allowed",
			len(f.With), MaxFilter)
	}
	conditions, violations := dsl.ParseEventPattern(f.With)
	for _, p := range violations {
		if p.Severity == dsl.SeverityError {
			return invalid("filter.with"+p.Path, p.Message, "filter.with%s: %s", p.Path, p.Message)
		}
	}
	f.Conditions = conditions
	return nil
}

// testDelivery returns the delivery of a test.
func testDelivery(w Webhook, id, actor string, now time.Time) (Delivery, error) {
	data, err := json.Marshal(map[string]string{"project": w.Project, "webhook": w.Name, "actor": actor})
	if err != nil {
		return Delivery{}, fmt.Errorf("encode a test event: %w", err)
	}
	e := event.Event{
		Project: w.Project, ID: id, Source: "/projects/" + w.Project + "/webhooks/" + w.Name, Type: Test, Subject: w.Name,
		Time: now.UTC(), DataContentType: "application/json", Data: data,
	}
	return Delivery{
		ID: "msg_" + strings.ReplaceAll(id, "-", ""), Project: w.Project, Webhook: w.ID, EventID: e.ID, EventSource: e.Source,
		EventType: e.Type,
		Status:    Pending, Event: cloudevents.JSON(e),
	}, nil
}
