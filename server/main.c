/*
 * main: see master.h.
 */
#include "master.h"

int
main(int argc, char **argv)
{
	return master(argc, argv);
}
