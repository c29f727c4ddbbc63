package postgres

// SetBounds lets tests meet with few records what lists of many records meet.
func (s *Site) SetBounds(few, some, many int) { s.bounds = bounds{few, some, many} }
