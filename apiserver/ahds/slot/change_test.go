package slot

import (
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/store"
)

var (
	midnight = time.Date(2031, 3, 1, 0, 0, 0, 0, time.UTC)
	tokens   = Tokens{Keys: [][]byte{[]byte("key")}, Slot: "demo/1"}
)

// in is a slot in a state: of the words active, inactive, free, booked, held and ended, the
// last of which is a hold that has.
func in(t *testing.T, words ...string) State {
	t.Helper()
	s := State{ID: "1", Content: schema.Content{
		"startAt": jsontext.Value(`"2031-03-01T09:00:00Z"`), "endAt": jsontext.Value(`"2031-03-01T10:00:00Z"`),
		"isActive": jsontext.Value("true"), "isBooked": jsontext.Value("false"), "resourceId": jsontext.Value(`"A"`),
	}}
	for _, word := range words {
		switch word {
		case "inactive":
			s.Content["isActive"] = jsontext.Value("false")
		case "booked":
			s.Content["isBooked"] = jsontext.Value("true")
		case "held":
			s.Hold = &Hold{Nonce: "n", Until: midnight.Add(time.Minute)}
		case "ended":
			s.Hold = &Hold{Nonce: "n", Until: midnight}
		}
	}
	return s
}

// words of a state and what it claims.
func (s State) words() []string {
	is := Read(s.Content)
	words := []string{map[bool]string{true: "active", false: "inactive"}[is.Active], map[bool]string{true: "booked", false: "free"}[is.Booked]}
	if s.held(midnight) {
		words = append(words, "held")
	}
	for _, claim := range s.Claims(midnight) {
		words = append(words, "claims "+map[bool]string{true: "for good", false: "for a while"}[claim.Expires.IsZero()])
	}
	return words
}

func codeOf(err error) string {
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Slot == "1" {
		return refused.Code
	}
	return ""
}

func TestTransitions(t *testing.T) {
	ask := func(text string) schema.Content {
		object, err := schema.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		content, _, err := HoldFields.Create(object, schema.Identity{})
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	none, wrong := ask(`{}`), ask(`{"holdToken":"x"}`)
	right := ask(`{"holdToken":"` + tokens.Of(&Hold{Nonce: "n"}) + `"}`)
	take := func(s State, asked schema.Content) (State, error) { return s.Take(tokens, asked, "new", midnight) }
	book := func(s State, asked schema.Content) (State, error) { return s.Book(tokens, asked, midnight) }
	release := func(s State, asked schema.Content) (State, error) { return s.Release(tokens, asked, midnight) }
	free, bookedNow, heldNow := []string{"active", "free"}, []string{"active", "booked", "claims for good"}, []string{"active", "free", "held", "claims for a while"}
	tests := map[string]struct {
		from  []string
		do    func(State, schema.Content) (State, error)
		asked schema.Content
		want  []string
		code  string
	}{
		"hold a free one":                       {free, take, none, heldNow, ""},
		"hold an inactive one":                  {[]string{"inactive"}, take, none, nil, CodeInactive},
		"hold a booked one":                     {[]string{"booked"}, take, none, nil, CodeBooked},
		"hold a held one":                       {[]string{"held"}, take, none, nil, CodeHeld},
		"hold one whose hold ended":             {[]string{"ended"}, take, none, heldNow, ""},
		"prolong a hold":                        {[]string{"held"}, take, right, heldNow, ""},
		"prolong somebody else's":               {[]string{"held"}, take, wrong, nil, CodeEnded},
		"prolong one that ended":                {[]string{"ended"}, take, right, nil, CodeEnded},
		"prolong one that never was":            {free, take, right, nil, CodeEnded},
		"book a free one":                       {free, book, none, bookedNow, ""},
		"book an inactive one":                  {[]string{"inactive"}, book, none, nil, CodeInactive},
		"book a booked one":                     {[]string{"booked"}, book, none, nil, CodeBooked},
		"book a booked one with a token":        {[]string{"booked"}, book, right, nil, CodeBooked},
		"book a held one":                       {[]string{"held"}, book, none, nil, CodeHeld},
		"book a held one as somebody else":      {[]string{"held"}, book, wrong, nil, CodeEnded},
		"book a held one as its holder":         {[]string{"held"}, book, right, bookedNow, ""},
		"book one whose hold ended":             {[]string{"ended"}, book, none, bookedNow, ""},
		"book with a hold that ended":           {[]string{"ended"}, book, right, nil, CodeEnded},
		"release a free one":                    {free, release, none, free, ""},
		"release a booked one":                  {[]string{"booked"}, release, none, free, ""},
		"release a booked one with a token":     {[]string{"booked"}, release, right, nil, CodeEnded},
		"release a held one":                    {[]string{"held"}, release, none, nil, CodeHeld},
		"release a held one with its token":     {[]string{"held"}, release, right, free, ""},
		"release somebody else's":               {[]string{"held"}, release, wrong, nil, CodeEnded},
		"release a hold that ended, again":      {[]string{"ended"}, release, right, free, ""},
		"release one that was released":         {free, release, right, free, ""},
		"release a booked one that is inactive": {[]string{"inactive", "booked"}, release, none, []string{"inactive", "free"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			next, err := test.do(in(t, test.from...), test.asked)
			if codeOf(err) != test.code || err != nil && test.code == "" {
				t.Fatalf("got %v, want %q", err, test.code)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, next.words()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChange(t *testing.T) {
	tests := map[string]struct {
		from, to    []string
		books, seen bool
		want        []string
		code        string
	}{
		"book a free one":                    {nil, []string{"booked"}, true, false, []string{"active", "booked", "claims for good"}, ""},
		"book a booked one":                  {[]string{"booked"}, []string{"booked"}, true, false, nil, CodeBooked},
		"book a booked one that is inactive": {[]string{"booked", "inactive"}, []string{"booked"}, true, false, nil, CodeBooked},
		"leave a booked one booked":          {[]string{"booked"}, []string{"booked"}, false, false, []string{"active", "booked", "claims for good"}, ""},
		"put back a booked one":              {[]string{"booked"}, []string{"booked"}, true, true, []string{"active", "booked", "claims for good"}, ""},
		"book a held one":                    {[]string{"held"}, []string{"booked"}, true, false, nil, CodeHeld},
		"book a held one, having seen so":    {[]string{"held"}, []string{"booked"}, true, true, nil, CodeHeld},
		"book one whose hold ended":          {[]string{"ended"}, []string{"booked"}, true, false, []string{"active", "booked", "claims for good"}, ""},
		"change a held one":                  {[]string{"held"}, nil, false, false, []string{"active", "free", "held", "claims for a while"}, ""},
		"make a held one inactive":           {[]string{"held"}, []string{"inactive"}, false, false, []string{"inactive", "free"}, ""},
		"make a booked one inactive":         {[]string{"booked"}, []string{"inactive", "booked"}, false, false, []string{"inactive", "booked"}, ""},
		"give a booking up":                  {[]string{"booked"}, nil, false, false, []string{"active", "free"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			next, err := in(t, test.from...).Change(Write{Content: in(t, test.to...).Content, Books: test.books, Seen: test.seen}, midnight)
			if codeOf(err) != test.code || err != nil && test.code == "" {
				t.Fatalf("got %v, want %q", err, test.code)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, next.words()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	hold := &Hold{Nonce: "n"}
	same := Tokens{Keys: [][]byte{[]byte("key")}, Slot: "demo/1"}.Of(&Hold{Nonce: "n", Until: midnight})
	if same != tokens.Of(hold) {
		t.Error("a token depends on when the hold ends")
	}
	for what, other := range map[string]string{
		"key":  Tokens{Keys: [][]byte{[]byte("yek")}, Slot: "demo/1"}.Of(hold),
		"slot": Tokens{Keys: [][]byte{[]byte("key")}, Slot: "demo/2"}.Of(hold),
		"hold": tokens.Of(&Hold{Nonce: "m"}),
	} {
		if other == same {
			t.Errorf("the token of another %s is the same", what)
		}
	}
	if first, second := NewNonce(), NewNonce(); first == second {
		t.Error("two nonces are the same")
	}
}

func TestClaim(t *testing.T) {
	claim := Read(in(t, "booked").Content).Claim(time.Time{})
	want := store.Claim{Line: "slot/a", From: midnight.Add(9 * time.Hour), Until: midnight.Add(10 * time.Hour)}
	if diff := cmp.Diff(want, claim); diff != "" || !IsClaim(claim) {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
