package extract

import (
	"math"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/store"
)

// position adds a Location.position with valid coordinates.
func (e *extractor) position(json []byte) {
	point := store.Point{Latitude: math.NaN(), Longitude: math.NaN()}
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			break
		}
		switch string(name) {
		case "latitude":
			point.Latitude = number(value)
		case "longitude":
			point.Longitude = number(value)
		}
	}
	if math.Abs(point.Latitude) <= 90 && math.Abs(point.Longitude) <= 180 {
		e.add(point)
	}
}

func number(json []byte) float64 {
	n, err := strconv.ParseFloat(string(json), 64)
	if err != nil {
		return math.NaN()
	}
	return n + 0 // never -0
}
