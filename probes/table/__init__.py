"""The probe table: examinations of labels, their scores, and the rows that say how far to trust them."""
