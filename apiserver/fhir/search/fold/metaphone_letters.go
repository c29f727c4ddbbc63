package fold

func (w *word) c(i int) sound {
	switch {
	case i > 1 && !w.vowel(i-2) && w.has(i-1, "ACH") && w.at(i+2) != 'I' && (w.at(i+2) != 'E' || w.has(i-2, "BACHER", "MACHER")):
		return as("K", 2)
	case i == 0 && w.has(i, "CAESAR"):
		return as("S", 2)
	case w.has(i, "CH"):
		return w.ch(i)
	case w.has(i, "CZ") && !w.has(i-2, "WICZ"):
		return sound{"S", "X", 2} // Czerny
	case w.has(i+1, "CIA"):
		return as("X", 3) // focaccia
	case w.has(i, "CC") && (i != 1 || w.at(0) != 'M'):
		return w.cc(i)
	case w.has(i, "CK", "CG", "CQ"):
		return as("K", 2)
	case w.has(i, "CIO", "CIE", "CIA"):
		return sound{"S", "X", 2}
	case w.has(i, "CI", "CE", "CY"):
		return as("S", 2)
	case w.oneOf(i+1, "CKQ") && !w.has(i+1, "CE", "CI"):
		return as("K", 2)
	}
	return as("K", 1)
}

func (w *word) ch(i int) sound {
	greekStart := i == 0 && w.has(1, "HARAC", "HARIS", "HOR", "HYM", "HIA", "HEM") && !w.has(0, "CHORE")
	hard := w.germanic || w.has(i-2, "ORCHES", "ARCHIT", "ORCHID") || w.oneOf(i+2, "TS") ||
		(i == 0 || w.oneOf(i-1, "AOUE")) && (i+1 == w.last || w.oneOf(i+2, "LRNMBHFVW"))
	switch {
	case w.has(i, "CHIA"):
		return as("K", 2) // Chianti
	case i > 0 && w.has(i, "CHAE"):
		return sound{"K", "X", 2} // Michael
	case greekStart || hard || i > 0 && w.has(0, "MC"):
		return as("K", 2)
	case i > 0:
		return sound{"X", "K", 2}
	}
	return as("X", 2)
}

func (w *word) cc(i int) sound {
	switch {
	case !w.oneOf(i+2, "IEH") || w.has(i+2, "HU"):
		return as("K", 2)
	case i == 1 && w.at(0) == 'A' || w.has(i-1, "UCCEE", "UCCES"):
		return as("KS", 3) // accident, success
	}
	return as("X", 3) // Bertucci
}

func (w *word) d(i int) sound {
	switch {
	case w.has(i, "DG") && w.oneOf(i+2, "IEY"):
		return as("J", 3) // edge
	case w.has(i, "DG"):
		return as("TK", 2) // Edgar
	}
	return as("T", w.run(i, "TD"))
}

func (w *word) g(i int) sound {
	switch {
	case w.at(i+1) == 'H':
		return w.gh(i)
	case w.at(i+1) == 'N':
		return w.gn(i)
	case w.has(i+1, "LI") && !w.slavic:
		return sound{"KL", "L", 2} // Tagliaro
	case i == 0 && (w.at(1) == 'Y' || w.has(1, "ES", "EP", "EB", "EL", "EY", "IB", "IL", "IN", "IE", "EI", "ER")):
		return sound{"K", "J", 2}
	case (w.has(i+1, "ER") || w.at(i+1) == 'Y') && !w.has(0, "DANGER", "RANGER", "MANGER") && !w.oneOf(i-1, "EI") && !w.has(i-1, "RGY", "OGY"):
		return sound{"K", "J", 2}
	case !w.oneOf(i+1, "EIY") && !w.has(i-1, "AGGI", "OGGI"):
		return as("K", w.run(i, "G"))
	case w.germanic || w.has(i+1, "ET"):
		return as("K", 2)
	case w.has(i+1, "IER") && i+3 == w.last:
		return as("J", 2)
	}
	return sound{"J", "K", 2} // Biaggi
}

func (w *word) gh(i int) sound {
	switch {
	case i > 0 && !w.vowel(i-1):
		return as("K", 2)
	case i == 0 && w.at(2) == 'I':
		return as("J", 2) // Ghislane
	case i == 0:
		return as("K", 2)
	case w.oneOf(i-2, "BHD") || w.oneOf(i-3, "BHD") || w.oneOf(i-4, "BH"):
		return as("", 2) // Hugh
	case i > 2 && w.at(i-1) == 'U' && w.oneOf(i-3, "CGLRT"):
		return as("F", 2) // laugh
	case w.at(i-1) != 'I':
		return as("K", 2)
	}
	return as("", 2)
}

func (w *word) gn(i int) sound {
	switch {
	case i == 1 && w.vowel(0) && !w.slavic:
		return sound{"KN", "N", 2}
	case !w.has(i+2, "EY") && !w.slavic:
		return sound{"N", "KN", 2}
	}
	return as("KN", 2)
}

func (w *word) j(i int) sound {
	switch {
	case w.has(i, "JOSE") && i == 0 && w.last == 3:
		return as("H", 1)
	case w.has(i, "JOSE"):
		return sound{"J", "H", 1}
	case i == 0:
		return sound{"J", "A", w.run(i, "J")} // Yankelovich, Jankelowicz
	case w.vowel(i-1) && !w.slavic && w.oneOf(i+1, "AO"):
		return sound{"J", "H", 1} // bajador
	case i == w.last:
		return sound{"J", "", 1}
	case !w.oneOf(i+1, "LTKSNMBZ") && !w.oneOf(i-1, "SKL"):
		return as("J", w.run(i, "J"))
	}
	return as("", w.run(i, "J"))
}

func (w *word) l(i int) sound {
	if w.at(i+1) != 'L' {
		return as("L", 1)
	}
	if i == w.last-2 && w.has(i-1, "ILLO", "ILLA", "ALLE") ||
		(w.has(w.last-1, "AS", "OS") || w.oneOf(w.last, "AO")) && w.has(i-1, "ALLE") {
		return sound{"L", "", 2} // cabrillo
	}
	return as("L", 2)
}

func (w *word) m(i int) sound {
	if w.has(i-1, "UMB") && (i+1 == w.last || w.has(i+2, "ER")) {
		return as("M", 2) // dumb
	}
	return as("M", w.run(i, "M"))
}

func (w *word) p(i int) sound {
	if w.at(i+1) == 'H' {
		return as("F", 2)
	}
	return as("P", w.run(i, "PB"))
}

func (w *word) r(i int) sound {
	if i == w.last && !w.slavic && w.has(i-2, "IE") && !w.has(i-4, "ME", "MA") {
		return sound{"", "R", 1} // Rogier
	}
	return as("R", w.run(i, "R"))
}

func (w *word) s(i int) sound {
	switch {
	case w.has(i-1, "ISL", "YSL"):
		return as("", 1) // isle
	case i == 0 && w.has(i, "SUGAR"):
		return sound{"X", "S", 1}
	case w.has(i, "SH") && w.has(i+1, "HEIM", "HOEK", "HOLM", "HOLZ"):
		return as("S", 2)
	case w.has(i, "SH"):
		return as("X", 2)
	case w.has(i, "SIO", "SIA") && w.slavic:
		return as("S", 3)
	case w.has(i, "SIO", "SIA"):
		return sound{"S", "X", 3}
	case i == 0 && w.oneOf(1, "MNLW") || w.at(i+1) == 'Z':
		return sound{"S", "X", w.run(i, "Z")} // Smith and Schmidt
	case w.has(i, "SC"):
		return w.sc(i)
	case i == w.last && w.has(i-2, "AI", "OI"):
		return sound{"", "S", 1} // Artois
	}
	return as("S", w.run(i, "SZ"))
}

func (w *word) sc(i int) sound {
	switch {
	case w.at(i+2) == 'H' && w.has(i+3, "ER", "EN"):
		return sound{"X", "SK", 3} // Schermerhorn
	case w.at(i+2) == 'H' && w.has(i+3, "OO", "UY", "ED", "EM"):
		return as("SK", 3) // school
	case w.at(i+2) == 'H' && i == 0 && !w.vowel(3) && w.at(3) != 'W':
		return sound{"X", "S", 3}
	case w.at(i+2) == 'H':
		return as("X", 3)
	case w.oneOf(i+2, "IEY"):
		return as("S", 3)
	}
	return as("SK", 3)
}

func (w *word) t(i int) sound {
	switch {
	case w.has(i, "TION", "TIA", "TCH"):
		return as("X", 3)
	case w.has(i, "TH", "TTH") && (w.germanic || w.has(i+2, "OM", "AM")):
		return as("T", 2) // Thomas
	case w.has(i, "TH", "TTH"):
		return sound{"0", "T", 2}
	}
	return as("T", w.run(i, "TD"))
}

func (w *word) w(i int) sound {
	start := sound{}
	switch {
	case w.has(i, "WR"):
		return as("R", 2)
	case i == 0 && w.vowel(1):
		start = sound{"A", "F", 1} // Wasserman and Vasserman
	case i == 0 && w.has(i, "WH"):
		start = as("A", 1)
	}
	switch {
	case i == w.last && w.vowel(i-1) || w.has(i-1, "EWSKI", "EWSKY", "OWSKI", "OWSKY") || w.germanic:
		return sound{start.first, start.second + "F", 1} // Arnow and Arnoff
	case w.has(i, "WICZ", "WITZ"):
		return sound{start.first + "TS", start.second + "FX", 4} // Filipowicz
	}
	return sound{start.first, start.second, 1}
}

func (w *word) x(i int) sound {
	switch {
	case i == 0:
		return as("S", 1) // Xavier
	case i == w.last && (w.has(i-3, "IAU", "EAU") || w.has(i-2, "AU", "OU")):
		return as("", 1) // breaux
	}
	return as("KS", w.run(i, "CX"))
}

func (w *word) z(i int) sound {
	switch {
	case w.at(i+1) == 'H':
		return as("J", 2) // Zhao
	case w.has(i+1, "ZO", "ZI", "ZA") || w.slavic && i > 0 && w.at(i-1) != 'T':
		return sound{"S", "TS", w.run(i, "Z")}
	}
	return as("S", w.run(i, "Z"))
}
