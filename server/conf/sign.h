/*
 * sign: the command `pagewise sign', which prints signed links (signed_link.h).
 *
 *	pagewise sign --key FILE [--expires TIME] [--client ADDRESS] URL ...
 */
#ifndef SERVER_CONF_SIGN_H
#define SERVER_CONF_SIGN_H

/*
 * Runs the command; argv[0] is "sign".  Returns the exit status: 0, 1 after a message, 2 if the
 * command line is wrong.
 */
int sign(int argc, char **argv);

#endif
