"""One module per exercise, named by its slug: a right answer, how we can tell, what people write instead."""
