"""Which pods would have to go so that another one fits: upstream's DefaultPreemption, asked of the mirror."""
