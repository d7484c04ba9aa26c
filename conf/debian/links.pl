# Of a link to a file that is not installed its words stay.
#
#	perl links.pl DIR
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Find qw(find);

sub change
{
	my ($path) = @_;
	open my $in, '<', $path or die "$path: $!\n";
	local $/;
	my $text = <$in>;
	close $in;
	my $dir = dirname $path;
	my $installed = sub {
		my ($to) = @_;
		return $to =~ /^(#|[a-z]+:)/ || -e "$dir/" . $to =~ s/#.*//r;
	};
	my $new = $text =~ s/\[([^\[\]]*)\]\(([^()\s]+)\)/$installed->($2) ? $& : $1/egr;
	return if $new eq $text;
	open my $out, '>', $path or die "$path: $!\n";
	print $out $new;
	close $out or die "$path: $!\n";
}

find({ no_chdir => 1, wanted => sub { change($_) if /\.md$/ && -f } }, @ARGV);
