package search

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// defaultDistance is the distance in kilometers of a query without one. R4 leaves the default to
// the server (location.html#positional).
const defaultDistance = 5

// units has the units of distance in meters, by UCUM code. "" is the default, kilometers.
var units = map[string]float64{
	"": 1000, "km": 1000, "m": 1, "[mi_i]": 1609.344, "[mi_us]": 6336000. / 3937, "[nmi_i]": 1852, "[ft_i]": 0.3048,
}

// near parses latitude|longitude|distance|units. R4 location.html#positional.
func (p *parser) near(d definition, item string) (store.Condition, error) {
	parts, err := splitParts(item)
	if err != nil {
		return nil, err
	}
	if len(parts) < 2 || len(parts) > 4 {
		return nil, fmt.Errorf("%s is not a place; write latitude|longitude|distance|units, where distance and units are optional", r4.Quote(item))
	}
	parts = append(parts, "", "")
	condition := store.Near{Param: d.name}
	if condition.Center.Latitude, err = degrees(parts[0], "latitude", 90); err != nil {
		return nil, err
	}
	if condition.Center.Longitude, err = degrees(parts[1], "longitude", 180); err != nil {
		return nil, err
	}
	distance := float64(defaultDistance)
	if parts[2] != "" {
		if distance, err = decimal(parts[2]); err != nil || distance < 0 {
			return nil, fmt.Errorf("%s is not a distance; give a decimal number that is not negative", r4.Quote(parts[2]))
		}
	}
	unit, ok := units[parts[3]]
	if !ok {
		known := []string{"km", "m", "[mi_i]", "[mi_us]", "[nmi_i]", "[ft_i]"}
		return nil, fmt.Errorf("%s is not a supported unit of distance; give one of %s", r4.Quote(parts[3]), strings.Join(known, ", "))
	}
	condition.Meters = distance * unit
	return condition, nil
}

// decimalPattern matches a FHIR decimal of limited length. R4 datatypes.html#decimal.
var decimalPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?$`)

func decimal(text string) (float64, error) {
	if !decimalPattern.MatchString(text) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// degrees parses an angle from -most to most degrees. what is the name of the angle in the error.
func degrees(text, what string, most float64) (float64, error) {
	value, err := decimal(text)
	if err != nil || math.Abs(value) > most {
		return 0, fmt.Errorf("%s is not a %s; give decimal degrees from -%v to %v", r4.Quote(text), what, most, most)
	}
	return value, nil
}
