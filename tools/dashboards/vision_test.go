package main

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type vector [3]float64

func (v vector) times(m [3]vector) (out vector) {
	for row := range m {
		for column := range v {
			out[row] += m[row][column] * v[column]
		}
	}
	return out
}

// visions are the matrices of Machado, Oliveira and Fernandes (2009) for complete deficiencies, for linear RGB.
func visions() map[string][3]vector {
	return map[string][3]vector{
		"full colour vision": {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"protanopia": {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216},
			{-0.003882, -0.048116, 1.051998}},
		"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
		"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
	}
}

// distances are those of two colours in CIELAB by kind of vision. 2 is just noticeable, 100 is the distance from black
// to white.
func distances(t *testing.T, a, b string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for name, matrix := range visions() {
		p, q := lab(linear(t, a).times(matrix)), lab(linear(t, b).times(matrix))
		found[name] = math.Hypot(math.Hypot(p[0]-q[0], p[1]-q[1]), p[2]-q[2])
	}
	return found
}

func linear(t *testing.T, color string) (v vector) {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(color, "#"), 16, 32)
	require.NoError(t, err)
	for i := range v {
		c := float64(n>>(16-8*i)&0xff) / 255
		if v[i] = c / 12.92; c > 0.04045 {
			v[i] = math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return v
}

// lab converts linear sRGB to CIELAB with the white of D65.
func lab(v vector) vector {
	xyz := v.times([3]vector{{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}})
	white := vector{0.9505, 1, 1.089}
	for i := range xyz {
		if xyz[i] /= white[i]; xyz[i] > 0.008856 {
			xyz[i] = math.Cbrt(xyz[i])
		} else {
			xyz[i] = 7.787*xyz[i] + 16.0/116
		}
	}
	return vector{116*xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])}
}

// Red and green are the classic pair that people with deuteranopia confuse; the test must see that.
func TestVisionsAreSimulated(t *testing.T) {
	t.Parallel()
	confused := distances(t, "#E24D42", "#7A9A3A")
	require.Greater(t, confused["full colour vision"], 60.0)
	require.Less(t, confused["deuteranopia"], 30.0)
}
